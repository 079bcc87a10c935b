import Base
import Storage

/// Grants as a table for people, page by page.
struct GrantTable {
    private var table: TextTable

    /// Creates a table for a terminal of this width; `nil` if it is for a pipe or a file.
    init(width: Int?) {
        table = TextTable(
            [
                TextTable.Column(title: "USER", narrowest: 12),
                TextTable.Column(title: "STATE"),
                TextTable.Column(title: "REASON", narrowest: 12),
                TextTable.Column(title: "SINCE"),
                TextTable.Column(title: "TOKEN ENDS"),
                TextTable.Column(title: "DUE"),
                TextTable.Column(title: "E-MAIL", narrowest: 16),
            ],
            width: width
        )
    }

    /// Returns the lines of the next page, below the titles on the first one.
    mutating func lines(of grants: [Grant], at now: Timestamp) -> [String] {
        table.lines(
            of: grants.map { grant in
                [
                    TerminalText.escaped(grant.userID),
                    grant.state.rawValue,
                    grant.reason == .none ? "-" : grant.reason.rawValue,
                    "\(RelativeTime(grant.since, from: now))",
                    grant.accessToken.map { "\(RelativeTime($0.expiresAt, from: now))" } ?? "-",
                    grant.dueAt.map { "\(RelativeTime($0, from: now))" } ?? "-",
                    grant.owner.email.map { TerminalText.escaped($0) } ?? "-",
                ]
            }
        )
    }
}
