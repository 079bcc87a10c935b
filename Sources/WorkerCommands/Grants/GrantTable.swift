import Clocks
import Store

/// Grants as a table for people, page by page.
///
/// Columns grow with their content up to a limit, and never shrink.
struct GrantTable {
    private struct Column {
        let title: String
        let widest: Int
        let cell: @Sendable (Grant, Timestamp) -> String
    }

    private static let columns = [
        Column(title: "USER", widest: 28) { grant, _ in TerminalText.escaped(grant.userID) },
        Column(title: "STATE", widest: 15) { grant, _ in grant.state.rawValue },
        Column(title: "REASON", widest: 26) { grant, _ in grant.reason == .none ? "-" : grant.reason.rawValue },
        Column(title: "SINCE", widest: 10) { grant, now in "\(RelativeTime(grant.since, from: now))" },
        Column(title: "TOKEN ENDS", widest: 10) { grant, now in
            grant.accessToken.map { "\(RelativeTime($0.expiresAt, from: now))" } ?? "-"
        },
        Column(title: "DUE", widest: 10) { grant, now in
            grant.dueAt.map { "\(RelativeTime($0, from: now))" } ?? "-"
        },
        Column(title: "E-MAIL", widest: 32) { grant, _ in grant.owner.email.map { TerminalText.escaped($0) } ?? "-" },
    ]

    private var widths = Self.columns.map(\.title.count)

    /// Returns the lines of the next page; pass `withHeader` for the first one.
    mutating func lines(of grants: [Grant], withHeader: Bool, at now: Timestamp) -> [String] {
        let cells = grants.map { grant in
            Self.columns.map { TerminalText.cut($0.cell(grant, now), to: $0.widest) }
        }
        let rows = (withHeader ? [Self.columns.map(\.title)] : []) + cells
        for row in rows {
            for (column, cell) in row.enumerated() { widths[column] = max(widths[column], cell.count) }
        }
        return rows.map(line)
    }

    private func line(_ cells: [String]) -> String {
        var text = ""
        var missing = 0
        // The last column is not padded, so that lines do not end in blanks.
        for (cell, width) in zip(cells, widths) {
            text += String(repeating: " ", count: missing) + cell
            missing = max(0, width - cell.count) + 2
        }
        return text
    }
}
