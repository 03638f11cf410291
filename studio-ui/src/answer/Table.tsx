import { useMemo, useState } from "preact/hooks";
import type { Cell, Table as Shape } from "../ask/shapes";

const number = (cell: Cell | undefined): number | string =>
  typeof cell === "number" ? cell : cell && typeof cell === "object" ? cell.value : typeof cell === "string" ? cell : -Infinity;

// A table that sorts by the column whose head is pressed, and back.
export function Table({ table }: { table: Shape }): preact.JSX.Element {
  const [by, setBy] = useState<{ column: number; down: boolean } | null>(null);
  const order = useMemo(() => {
    const rows = table.texts.map((_, index) => index);
    if (!by) return rows;
    const key = (row: number): number | string => number(table.cells[row]?.[by.column]);
    return rows.sort((one, other) => {
      const [a, b] = [key(one), key(other)];
      const more = typeof a === "string" || typeof b === "string" ? String(a).localeCompare(String(b)) : a - b;
      return by.down ? -more : more;
    });
  }, [table, by]);
  const press = (column: number): void =>
    setBy((now) => (now?.column !== column ? { column, down: table.numeric[column] ?? false } : now.down === (table.numeric[column] ?? false) ? { column, down: !now.down } : null));
  const shown = table.columns.map((column, index) => ({ column, index })).filter(({ column }) => !column.aside);
  const asides = table.columns.map((column, index) => ({ column, index })).filter(({ column }) => column.aside);
  return (
    <section>
      <h3>{table.title}</h3>
      <div class="scroll" tabindex={0} role="region" aria-label={table.title}>
        <table>
          <thead>
            <tr>
              {shown.map(({ column, index }) => (
                <th key={index} scope="col" class={table.numeric[index] ? "n" : ""}
                  aria-sort={by?.column === index ? (by.down ? "descending" : "ascending") : undefined}>
                  <button type="button" onClick={() => press(index)}>{column.name}{by?.column === index ? (by.down ? " ↓" : " ↑") : ""}</button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {order.map((row) => (
              <tr key={row} class={row === table.marked ? "chosen" : ""} aria-label={row === table.marked ? "chosen" : undefined}>
                {shown.map(({ column, index }, place) => (
                  <td key={index} class={table.numeric[index] ? "n" : ""}>
                    {column.unit === "citation" ? <a href={`#source-${String(table.cells[row]?.[index])}`}>{table.texts[row]?.[index]}</a> : table.texts[row]?.[index]}
                    {place === 0 && asides.map((aside) => table.cells[row]?.[aside.index] && <span key={aside.index} class="aside">{table.texts[row]?.[aside.index]}</span>)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {table.note && <p class="note">{table.note}</p>}
    </section>
  );
}
