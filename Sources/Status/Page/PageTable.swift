/// A table whose rows become blocks on a narrow screen.
///
/// The roles repeat those of the elements: a browser drops these for elements that are laid out as blocks.
struct PageTable {
    private let className: String
    private let caption: String
    private let columns: [String]
    private let rows: [[HTML]]

    /// Makes a table; the first cell of a row names the row.
    init(_ caption: String, className: String = "", columns: [String], rows: [[HTML]]) {
        self.className = className
        self.caption = caption
        self.columns = columns
        self.rows = rows
    }

    var html: HTML {
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
                    element("tr", ["role": "row"]) { cells(row) }
                }
            }
        }
    }

    private func cells(_ row: [HTML]) -> HTML {
        .joined(
            zip(columns, row).enumerated().map { index, cell in
                let (column, content) = cell
                if index == 0 {
                    return element("th", ["role": "rowheader", "scope": "row", "data-label": column]) { content }
                }
                return element("td", ["role": "cell", "data-label": column]) { content }
            }
        )
    }

    /// Returns the beginning of a caption that says how many of all rows are shown.
    static func extent(shown: Int, of all: Int, _ noun: String) -> String {
        all > shown
            ? "\(StatusPage.number(shown)) of \(StatusPage.count(all, noun)); \(StatusPage.number(all - shown)) more are not shown."
            : ""
    }
}
