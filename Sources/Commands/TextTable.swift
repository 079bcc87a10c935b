/// Rows in columns for people, page by page.
///
/// On a terminal the first page fixes the widths: wide texts are cut, and the last columns are left out if there is no
/// room for them. Elsewhere no text is cut: columns grow with their content, and a very long text moves the rest of its
/// own line.
struct TextTable {
    struct Column: Sendable {
        let title: String
        /// The width to which a terminal may cut the column; `nil` if its texts are never cut.
        var narrowest: Int?
    }

    private static let gap = 2
    /// The width up to which a column grows where nothing is cut.
    private static let widestPadding = 40

    private let columns: [Column]
    /// The width of the terminal; `nil` if the table is not for one.
    private let width: Int?
    private var widths: [Int]
    /// The number of columns that a terminal has room for.
    private var shown: Int
    private var isFitted = false

    init(_ columns: [Column], width: Int?) {
        self.columns = columns
        self.width = width
        widths = columns.map(\.title.count)
        shown = columns.count
    }

    /// Returns the lines of the next page, below the titles on the first one.
    mutating func lines(of page: [[String]]) -> [String] {
        let isFirst = !isFitted
        let rows = (isFirst ? [columns.map(\.title)] : []) + page
        if isFirst || width == nil { grow(with: rows) }
        if isFirst, let width { fit(width) }
        isFitted = true
        return rows.map(line)
    }

    private mutating func grow(with rows: [[String]]) {
        let limit = width == nil ? Self.widestPadding : Int.max
        for row in rows {
            for (column, cell) in row.enumerated() where cell.count <= limit {
                widths[column] = max(widths[column], cell.count)
            }
        }
    }

    /// Narrows the widest columns, and then drops the last ones, until a line fits.
    private mutating func fit(_ width: Int) {
        let natural = widths
        while true {
            let columns = 0..<shown
            let room = width - Self.gap * (shown - 1)
            while widths[columns].reduce(0, +) > room {
                let wide = columns.filter { column in
                    self.columns[column].narrowest.map { widths[column] > $0 } ?? false
                }
                guard let widest = wide.max(by: { widths[$0] < widths[$1] }) else { break }
                widths[widest] -= 1
            }
            guard widths[columns].reduce(0, +) > room, shown > 1 else { return }
            shown -= 1
            widths = natural
        }
    }

    private func line(_ row: [String]) -> String {
        var text = ""
        var missing = 0
        for (cell, width) in zip(row, widths).prefix(shown) {
            let shown = self.width == nil ? cell : TerminalText.cut(cell, to: width)
            text += String(repeating: " ", count: missing) + shown
            missing = max(0, width - shown.count) + Self.gap
        }
        return text
    }
}
