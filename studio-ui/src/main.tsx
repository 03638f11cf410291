import { render } from "preact";
import { App } from "./app";
import "./style/tokens.css";
import "./style/page.css";

render(<App />, document.getElementById("studio")!);
