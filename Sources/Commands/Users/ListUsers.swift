import Storage
import Worker

/// `users list`: prints the stored users.
struct ListUsers: Command {
    static let specification = CommandSpecification(
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
            Example("refresh-worker users list", "a table of all users"),
            Example(
                "refresh-worker users list --json | jq -r 'select(.email_verified == false) .user_id'",
                "the users whose e-mail address is not verified"
            ),
        ],
        exitCodes: .ofDatabase()
    )

    static let columns: [TextTable<User>.Column] = [
        .init("USER", narrowest: 12) { user, _ in TerminalText.escaped(user.id) },
        .init("E-MAIL", narrowest: 16) { user, _ in user.email.map { TerminalText.escaped($0) } ?? "-" },
        .init("LAST SIGN-IN") { user, now in user.lastLoginAt.map { "\(RelativeTime($0, from: now))" } ?? "-" },
        .init("CREATED") { user, now in "\(RelativeTime(user.createdAt, from: now))" },
        .init("STATE") { user, _ in user.status },
        .init("NAME", narrowest: 10) { user, _ in user.name.map { TerminalText.escaped($0) } ?? "-" },
    ]

    init(_ arguments: CommandArguments) {}

    func run(in context: CommandContext) async throws -> ExitCode {
        let count = try await context.withExistingStore(for: .reading) { store in
            var list = Listing(Self.columns, in: context, json: UserDocument.write)
            var last: String?
            while true {
                let page = try await store.users(after: last, atMost: ListGrants.pageSize)
                guard let lastUser = page.last else { return list.count }
                last = lastUser.id
                _ = try await list.print(page)
            }
        }
        if count == 0 && !context.printsJSON { Output.error.line("no user is stored") }
        return .success
    }
}
