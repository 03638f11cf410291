import { defineConfig } from "vite";

// The page is served by the package itself: relative paths, no source maps, a name that says what is in a file.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/datahall/studio/static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        entryFileNames: "assets/[name]-[hash].js",
        chunkFileNames: "assets/[name]-[hash].js",
        assetFileNames: "assets/[name]-[hash][extname]",
      },
    },
  },
  server: { proxy: { "/api": "http://127.0.0.1:8899" } },
});
