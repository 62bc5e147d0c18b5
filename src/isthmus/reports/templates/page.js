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

// a field that leaves the rows of tables which hold all of its words, and of sections those that have such a row
const filtered = (before, tables, what) => {
  const line = document.createElement("p"), label = document.createElement("label");
  const field = document.createElement("input"), count = document.createElement("output");
  line.className = "filter";
  field.type = "search";
  label.append(`Show ${what} with `, field);
  line.append(label, " ", count);
  before.before(line);
  const rows = tables.flatMap((table) => [...table.tBodies[0].rows]);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    for (const row of rows) {
      const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
    for (const section of document.querySelectorAll("section[data-filtered]"))
      section.hidden = ![...section.querySelectorAll("tbody tr")].some((row) => !row.hidden);
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
  });
};
const sections = document.querySelectorAll("section[data-filtered]");
if (sections.length) filtered(sections[0], [...document.querySelectorAll("section[data-filtered] table")], "claims");
else
  for (const table of document.querySelectorAll("table"))
    if (table.tBodies[0].rows.length > 12) filtered(table.parentNode, [table], "rows");
