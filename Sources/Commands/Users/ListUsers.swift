import Base
import Storage
import Worker

extension Command {
    /// `users list`: prints the stored users.
    static let listUsers = Command(
        words: ["users", "list"],
        summary: "list the stored users",
        discussion: """
            Lists every user by id, with e-mail address, name, last sign-in and creation. A deleted user stays in the \
            list for a while, with the id alone. On a terminal the columns fit its width; in a pipe or a file no text \
            is cut.
            """,
        options: [.json],
        settings: [.config, .database, .logLevel],
        examples: [
            ("refresh-worker users list", "a table of all users"),
            (
                "refresh-worker users list --json | jq -r 'select(.email_verified == false) .user_id'",
                "the users whose e-mail address is not verified"
            ),
        ],
        exitCodes: .ofDatabase()
    ) { _, context in
        let count = try await context.withExistingStore(for: .reading) { store in
            var list = Listing(userColumns, json: context.printsJSON ? { $0.write(to: &$1) } : nil)
            var last: String?
            while true {
                let page = try await store.users(after: last, atMost: GrantPages.usualSize)
                guard let lastUser = page.last else { return list.count }
                last = lastUser.id
                _ = try await list.print(page, at: context.time.now)
            }
        }
        if count == 0 && !context.printsJSON { Output.error.line("no user is stored") }
        return .success
    }

    private static let userColumns: [Listing<User>.Column] = [
        .init("USER", narrowest: 12) { user, _ in user.id.escapedForTerminal },
        .init("E-MAIL", narrowest: 16) { user, _ in user.email?.escapedForTerminal ?? "-" },
        .init("LAST SIGN-IN") { user, now in user.lastLoginAt?.distance(from: now) ?? "-" },
        .init("CREATED") { user, now in user.createdAt.distance(from: now) },
        .init("STATE") { user, _ in user.status },
        .init("NAME", narrowest: 10) { user, _ in user.name?.escapedForTerminal ?? "-" },
    ]
}
