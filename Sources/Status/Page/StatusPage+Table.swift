import Base

extension StatusPage {
    /// Makes a table whose rows become blocks on a narrow screen.
    ///
    /// The first cell of a row names the row. The roles repeat those of the elements: a browser drops these for
    /// elements that are laid out as blocks.
    func table(_ caption: String, className: String = "", columns: [String], rows: [[HTML]]) -> HTML {
        element("table", className.isEmpty ? ["role": "table"] : ["role": "table", "class": className]) {
            element("caption") { caption }
            element("thead", ["role": "rowgroup"]) {
                element("tr", ["role": "row"]) {
                    for column in columns {
                        element("th", ["role": "columnheader", "scope": "col"]) { column }
                    }
                }
            }
            element("tbody", ["role": "rowgroup"]) {
                for row in rows {
                    element("tr", ["role": "row"]) {
                        for (column, cell) in zip(columns, row).prefix(1) {
                            element("th", ["role": "rowheader", "scope": "row", "data-label": column]) { cell }
                        }
                        for (column, cell) in zip(columns, row).dropFirst() {
                            element("td", ["role": "cell", "data-label": column]) { cell }
                        }
                    }
                }
            }
        }
    }

    /// Returns the beginning of a caption that says how many of all rows are shown.
    static func extent(shown: Int, of all: Int, _ noun: String) -> String {
        all > shown ? "\(shown.grouped) of \(all.grouped(noun)); \((all - shown).grouped) more are not shown." : ""
    }
}
