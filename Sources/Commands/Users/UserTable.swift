import Base
import Storage

/// Users as a table for people, page by page.
struct UserTable {
    private var table: TextTable

    /// Creates a table for a terminal of this width; `nil` if it is for a pipe or a file.
    init(width: Int?) {
        table = TextTable(
            [
                TextTable.Column(title: "USER", narrowest: 12),
                TextTable.Column(title: "E-MAIL", narrowest: 16),
                TextTable.Column(title: "LAST SIGN-IN"),
                TextTable.Column(title: "CREATED"),
                TextTable.Column(title: "STATE"),
                TextTable.Column(title: "NAME", narrowest: 10),
            ],
            width: width
        )
    }

    /// Returns the lines of the next page, below the titles on the first one.
    mutating func lines(of users: [User], at now: Timestamp) -> [String] {
        table.lines(
            of: users.map { user in
                [
                    TerminalText.escaped(user.id),
                    user.email.map { TerminalText.escaped($0) } ?? "-",
                    user.lastLoginAt.map { "\(RelativeTime($0, from: now))" } ?? "-",
                    "\(RelativeTime(user.createdAt, from: now))",
                    user.status,
                    user.name.map { TerminalText.escaped($0) } ?? "-",
                ]
            }
        )
    }
}

extension User {
    /// The user's status in a word.
    var status: String { isDeleted ? "deleted" : isActive ? "active" : "inactive" }
}
