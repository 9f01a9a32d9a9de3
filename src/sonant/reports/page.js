for (const table of document.querySelectorAll("table.sortable")) {
  const head = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  head.forEach((cell, column) => cell.addEventListener("click", () => {
    const order = cell.dataset.order === "-1" ? 1 : -1;
    head.forEach(other => delete other.dataset.order);
    cell.dataset.order = order;
    const key = row => {
      const found = row.cells[column];
      return found.dataset.value === undefined ? found.textContent : Number(found.dataset.value);
    };
    const rows = [...body.rows].sort((a, b) => {
      const x = key(a), y = key(b);
      return (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y))) * order;
    });
    body.append(...rows);
  }));
}
