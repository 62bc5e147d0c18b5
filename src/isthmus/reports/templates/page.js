for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  table.querySelectorAll("th").forEach((heading, place) => {
    const sort = () => {
      const up = heading.ariaSort !== "ascending";
      const value = (row) => row.cells[place].textContent.trim();
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        const difference = parseFloat(x) - parseFloat(y);
        return (up ? 1 : -1) * (Number.isNaN(difference) ? x.localeCompare(y) : difference);
      });
      for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
      heading.ariaSort = up ? "ascending" : "descending";
      body.append(...rows);
    };
    heading.tabIndex = 0;
    heading.title = "Sort by this column";
    heading.addEventListener("click", sort);
    heading.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
  });
}
