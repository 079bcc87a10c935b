import Base

/// A listing of items, a page at a time: a table for people, or JSON.
///
/// On a terminal the first page fixes the widths: wide texts are cut, and the last columns are left out if there is no
/// room for them. Elsewhere no text is cut: columns grow with their content, and a very long text moves the rest of its
/// own line.
struct Listing<Item> {
    struct Column: Sendable {
        let title: String
        /// The width to which a terminal can cut the column, or `nil` if its texts are never cut.
        var narrowest: Int?
        let text: @Sendable (Item, Timestamp) -> String
    }

    private static var gap: Int { 2 }
    /// The width up to which a column grows where nothing is cut.
    private static var maximumPadding: Int { 40 }

    /// The number of items that were printed.
    private(set) var count = 0
    private let limit: Int?
    /// Writes an item as JSON, or `nil` for a table.
    private let json: ((Item, inout JSONLine) -> Void)?
    private let output = BlockingCallQueue(label: "refresh-worker.output")
    private let columns: [Column]
    private let width: Int?
    private var widths: [Int]
    /// The number of columns that a terminal has room for.
    private var shown: Int
    private var isFitted = false

    init(
        _ columns: [Column],
        limit: Int? = nil,
        width: Int? = Output.standard.width,
        json: ((Item, inout JSONLine) -> Void)? = nil
    ) {
        self.columns = columns
        self.limit = limit
        self.width = width
        self.json = json
        widths = columns.map(\.title.count)
        shown = columns.count
    }

    /// Prints the items up to the limit, and returns `false` once it is reached.
    mutating func print(_ items: [Item], at now: Timestamp) async throws -> Bool {
        let page = if let limit { Array(items.prefix(limit - count)) } else { items }
        count += page.count
        if !page.isEmpty {
            let text = lines(of: page, at: now).joined(separator: "\n")
            await output.run { Output.standard.line(text) }
        }
        return count < limit ?? .max
    }

    /// Returns the lines of the next page, in a table below the titles on the first one.
    mutating func lines(of page: [Item], at now: Timestamp) -> [String] {
        if let json {
            return page.map { item in
                var line = JSONLine()
                json(item, &line)
                return line.text
            }
        }
        let isFirst = !isFitted
        let rows = (isFirst ? [columns.map(\.title)] : []) + page.map { item in columns.map { $0.text(item, now) } }
        if isFirst || width == nil { grow(with: rows) }
        if isFirst, let width { fit(width) }
        isFitted = true
        return rows.map(line)
    }

    private mutating func grow(with rows: [[String]]) {
        let limit = width == nil ? Self.maximumPadding : Int.max
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
                let wide = columns.filter { widths[$0] > self.columns[$0].narrowest ?? .max }
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
            let shown = self.width == nil ? cell : cell.cut(toWidth: width)
            text += String(repeating: " ", count: missing) + shown
            missing = max(0, width - shown.count) + Self.gap
        }
        return text
    }
}
