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
    /// The width of the terminal, or `nil` if the table is not for one.
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
            try await output.run { Output.standard.line(text) }
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
            let shown = self.width == nil ? cell : cell.cut(to: width)
            text += String(repeating: " ", count: missing) + shown
            missing = max(0, width - shown.count) + Self.gap
        }
        return text
    }
}

/// Names and values in two columns, for people.
extension [(name: String, value: String)] {
    var lines: [String] {
        let width = map(\.name.count).max() ?? 0
        return map { $0.name.padding(to: width + 2) + $0.value }
    }
}

/// Times for people.
extension Timestamp {
    /// The distance from now, in a unit that suits people.
    func distance(from now: Timestamp) -> String {
        let seconds = (self - now).wholeMilliseconds / 1000
        let amount =
            switch seconds.magnitude {
            case 0: "now"
            case ..<100: "\(seconds.magnitude) s"
            case ..<(100 * 60): "\(seconds.magnitude / 60) min"
            case ..<(48 * 3600): "\(seconds.magnitude / 3600) h"
            default: "\(seconds.magnitude / 86_400) d"
            }
        return seconds == 0 ? amount : seconds > 0 ? "in \(amount)" : "\(amount) ago"
    }

    /// The time with its distance from now.
    func shown(at now: Timestamp) -> String { "\(iso8601Seconds) (\(distance(from: now)))" }
}

extension String {
    /// The text cut to the width, with an ellipsis at the cut.
    fileprivate func cut(to width: Int) -> String { count <= width ? self : prefix(width - 1) + "…" }
}

extension Int64 {
    /// The number as a number of bytes, for people.
    var inBytes: String {
        guard self >= 1024 else { return self == 1 ? "1 byte" : "\(self) bytes" }
        var tenths = self * 10
        var unit = ""
        for larger in ["KiB", "MiB", "GiB", "TiB"] where tenths >= 10240 {
            tenths /= 1024
            unit = larger
        }
        return "\(tenths / 10).\(tenths % 10) \(unit)"
    }
}
