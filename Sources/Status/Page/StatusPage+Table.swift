import Base

extension StatusPage {
    /// A column of a table by its heading. Numbers are aligned at their right.
    struct Column: ExpressibleByStringLiteral {
        let heading: String
        let isNumber: Bool

        init(_ heading: String, isNumber: Bool = false) {
            self.heading = heading
            self.isNumber = isNumber
        }

        init(stringLiteral heading: String) { self.init(heading) }

        static func number(_ heading: String) -> Column { Column(heading, isNumber: true) }
    }

    /// Makes a table whose rows become blocks on a narrow screen.
    ///
    /// The first cell of a row names the row. The roles repeat those of the elements: a browser drops these for
    /// elements that are laid out as blocks.
    func table(_ caption: String, className: String = "", columns: [Column], rows: [[HTML]]) -> HTML {
        element("table", className.isEmpty ? ["role": "table"] : ["role": "table", "class": className]) {
            element("caption") { caption }
            element("thead", ["role": "rowgroup"]) {
                element("tr", ["role": "row"]) {
                    for column in columns {
                        element(
                            "th",
                            column.isNumber
                                ? ["role": "columnheader", "scope": "col", "class": "number"]
                                : ["role": "columnheader", "scope": "col"]
                        ) { column.heading }
                    }
                }
            }
            element("tbody", ["role": "rowgroup"]) {
                for row in rows {
                    element("tr", ["role": "row"]) {
                        for (column, cell) in zip(columns, row).prefix(1) {
                            element("th", ["role": "rowheader", "scope": "row", "data-label": column.heading]) { cell }
                        }
                        for (column, cell) in zip(columns, row).dropFirst() {
                            element(
                                "td",
                                column.isNumber
                                    ? ["role": "cell", "data-label": column.heading, "class": "number"]
                                    : ["role": "cell", "data-label": column.heading]
                            ) { cell }
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
