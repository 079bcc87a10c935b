import Base
private import Synchronization
import Telemetry
import Worker

/// A listing of items: a table for people, or JSON, a page at a time.
struct Listing<Item> {
    private(set) var count = 0
    private var table: TextTable<Item>
    private let limit: Int?
    private let printsJSON: Bool
    private let time: any TimeSource
    private let json: (Item, inout JSONLine) -> Void
    private let output = BlockingCallQueue(label: "refresh-worker.output")

    init(
        _ columns: [TextTable<Item>.Column],
        limit: Int? = nil,
        in context: CommandContext,
        json: @escaping (Item, inout JSONLine) -> Void
    ) {
        table = TextTable(columns, width: Output.standard.width)
        self.limit = limit
        printsJSON = context.printsJSON
        time = context.time
        self.json = json
    }

    /// Prints the items up to the limit, and returns `false` once it is reached.
    mutating func print(_ items: [Item]) async throws -> Bool {
        let page = limit.map { Array(items.prefix($0 - count)) } ?? items
        count += page.count
        if !page.isEmpty {
            let lines = printsJSON ? page.map(document) : table.lines(of: page, at: time.now)
            try await output.run { Output.standard.line(lines.joined(separator: "\n")) }
        }
        return limit.map { count < $0 } ?? true
    }

    private func document(of item: Item) -> String {
        var line = JSONLine()
        json(item, &line)
        return line.text
    }
}

/// Items in rows for people, page by page.
///
/// On a terminal the first page fixes the widths: wide texts are cut, and the last columns are left out if there is no
/// room for them. Elsewhere no text is cut: columns grow with their content, and a very long text moves the rest of its
/// own line.
struct TextTable<Item> {
    struct Column: Sendable {
        let title: String
        /// The width to which a terminal may cut the column, or `nil` if its texts are never cut.
        let narrowest: Int?
        let text: @Sendable (Item, Timestamp) -> String

        init(_ title: String, narrowest: Int? = nil, _ text: @escaping @Sendable (Item, Timestamp) -> String) {
            self.title = title
            self.narrowest = narrowest
            self.text = text
        }
    }

    private static var gap: Int { 2 }
    /// The width up to which a column grows where nothing is cut.
    private static var widestPadding: Int { 40 }

    private let columns: [Column]
    /// The width of the terminal, or `nil` if the table is not for one.
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
    mutating func lines(of page: [Item], at now: Timestamp) -> [String] {
        let isFirst = !isFitted
        let rows = (isFirst ? [columns.map(\.title)] : []) + page.map { item in columns.map { $0.text(item, now) } }
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

/// Names and values in two columns, for people.
enum FactList {
    static func lines(_ facts: [(name: String, value: String)]) -> [String] {
        let width = facts.map(\.name.count).max() ?? 0
        return facts.map { $0.name.padding(to: width + 2) + $0.value }
    }

    static func time(_ instant: Timestamp?, _ now: Timestamp) -> String {
        instant.map { "\($0.iso8601Seconds) (\(RelativeTime($0, from: now)))" } ?? "-"
    }
}

/// The distance of an instant from now, in a unit that suits people.
struct RelativeTime: CustomStringConvertible {
    let description: String

    init(_ instant: Timestamp, from now: Timestamp) {
        let seconds = (instant - now).wholeMilliseconds / 1000
        let amount: String
        switch seconds.magnitude {
        case 0:
            description = "now"
            return
        case ..<100: amount = "\(seconds.magnitude) s"
        case ..<(100 * 60): amount = "\(seconds.magnitude / 60) min"
        case ..<(48 * 3600): amount = "\(seconds.magnitude / 3600) h"
        default: amount = "\(seconds.magnitude / 86_400) d"
        }
        description = seconds > 0 ? "in \(amount)" : "\(amount) ago"
    }
}

/// Makes text from outside safe for a terminal.
enum TerminalText {
    /// Escapes characters that could move the cursor or change the direction of the text.
    static func escaped(_ text: String) -> String {
        var shown = ""
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator:
                shown += "\\u{\(String(scalar.value, radix: 16))}"
            default: shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }

    /// Cuts the text to the width.
    ///
    /// An ellipsis marks the cut.
    static func cut(_ text: String, to width: Int) -> String {
        text.count <= width ? text : text.prefix(width - 1) + "…"
    }
}

/// Formats a number of bytes for people.
enum ByteCount {
    static func text(_ count: Int64) -> String {
        guard count >= 1024 else { return count == 1 ? "1 byte" : "\(count) bytes" }
        var tenths = count * 10
        var unit = ""
        for larger in ["KiB", "MiB", "GiB", "TiB"] where tenths >= 10240 {
            tenths /= 1024
            unit = larger
        }
        return "\(tenths / 10).\(tenths % 10) \(unit)"
    }
}

/// A line on a terminal that is overwritten on each update.
///
/// It writes nothing if the output is not a terminal.
final class TerminalProgress: Sendable {
    /// Moves to the first column and erases the rest of the line
    /// (https://man7.org/linux/man-pages/man4/console_codes.4.html).
    private static let eraseLine = "\r\u{1b}[K"

    private let output: Output
    private let isShown = Mutex(false)

    init(to output: Output) {
        self.output = output
    }

    func show(_ text: String) {
        guard output.isTerminal else { return }
        isShown.withLock { isShown in
            output.write(Self.eraseLine + text)
            isShown = true
        }
    }

    /// Erases the line before a permanent line is written.
    func clear() {
        isShown.withLock { isShown in
            if isShown { output.write(Self.eraseLine) }
            isShown = false
        }
    }
}
