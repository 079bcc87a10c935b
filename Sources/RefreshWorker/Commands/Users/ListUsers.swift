import Base
import Records
import Storage

extension Command {
    /// `users list`: prints the stored users.
    static let listUsers = Command(
        words: ["users", "list"],
        summary: "list the stored users",
        discussion: """
            Lists the users by id, with e-mail address, name, last sign-in and creation: every user, or those that fit \
            all of the options. A deleted user stays in the list for a while, with the id alone. On a terminal the \
            columns fit its width; in a pipe or a file no text is cut.
            """,
        options: [
            .json,
            OptionSpecification(
                "state",
                .choice(userStates, as: "STATE"),
                "only users in this state: " + userStates.joined(separator: ", ")
            ),
            .email("users"),
            OptionSpecification("limit", .number(1...1_000_000), "at most this many users"),
        ],
        settings: [.config, .database, .logLevel],
        examples: [
            "refresh-worker users list": "a table of all users",
            "refresh-worker users list --email alice@example.com": "who writes to you from this address?",
            "refresh-worker users list --json | jq -r 'select(.email_verified == false) .user_id'":
                "the users whose e-mail address is not verified",
        ],
        exitCodes: .ofDatabase()
    ) { arguments, context, output in
        let (state, email, limit) = (arguments["state"], arguments["email"], arguments["limit"].flatMap { Int($0) })
        let count = try await context.withExistingStore(for: .reading) { store in
            var list = Listing(UserColumns.all, limit: limit, json: output.isJSON ? { $0.write(to: &$1) } : nil)
            var last: String?
            while true {
                let page =
                    if let email {
                        try await store.users(withEmail: email)
                    } else {
                        try await store.users(after: last, atMost: GrantPages.usualSize)
                    }
                let fitting = page.filter { state == nil || $0.status == state }
                let wantsMore = try await list.print(fitting, at: context.time.now)
                last = page.last?.id
                guard wantsMore, last != nil, email == nil else { return list.count }
            }
        }
        if count == 0 && !output.isJSON {
            let selectsAll = state == nil && email == nil
            Output.error.line(selectsAll ? "no user is stored" : "no stored user fits all of these options")
        }
        return .success
    }

    private static let userStates = ["active", "inactive", "deleted"]
}
