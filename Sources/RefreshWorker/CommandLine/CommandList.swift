/// Every command, in the order of the help.
extension Command {
    /// The whole program: the daemon at the root, the commands below it.
    static let program: Command = {
        var program = runWorker
        program.subcommands = [
            grants, users, printToken, services, keys, notices, googleEvents, showStatus, runDoctor,
            backUp, restore, store, results, configuration, completion, showVersion, showHelp,
        ]
        return program
    }()

    private static let grants = Command(
        words: ["grants"],
        summary: "list, show, add, import, try, correct, export or disconnect stored grants, and show their history",
        discussion: """
            A grant is one user's consent at Google: its refresh token, its current access token and its state. A user \
            has one for each connected Google account. All of these commands can be used while the worker runs.
            """,
        settings: [.config, .database, .keyFile, .keyCommand],
        subcommands: [
            listGrants, showGrant, showHistory, addGrant, importGrants, retryGrants,
            setClient, exportGrants, disconnectGrant,
        ],
        run: nil
    )

    private static let users = Command(
        words: ["users"],
        summary: "list, show, import, delete or forget users",
        discussion: """
            Grants and the sessions of the app belong to users. A user is created at the first sign-in, or when a \
            grant of the user is stored; users of another system can be imported.
            """,
        settings: [.config, .database],
        subcommands: [listUsers, showUser, importUsers, deleteUser, forgetUsers],
        run: nil
    )

    private static let services = Command(
        words: ["services"],
        summary: "make credentials and handles for services that can get tokens",
        discussion: """
            The services are listed in a file, each with the hash of its credential, its permitted scopes and its \
            permitted users. docs/services.md describes the file and how a service uses its credential. The file also \
            lists the operators, who look up users on the status page.
            """,
        subcommands: [makeCredential, makeHandle],
        run: nil
    )

    private static let keys = Command(
        words: ["keys"],
        summary: "make, list, rotate or retire the keys that seal tokens, or that tokens are bound to",
        discussion: """
            Tokens in the database are sealed with a key from the key ring, a file of mode 0600 that belongs to the \
            user of the worker. Without it every user must sign in again, so keep a copy in a safe place, apart from \
            copies of the database.
            """,
        settings: [.config, .keyFile, .keyCommand],
        subcommands: [generateKeys, listKeys, rotateKeys, retireKey, addBindingKey],
        run: nil
    )

    private static let notices = Command(
        words: ["notices"],
        summary: "test the delivery to the backend, or notify it again of changes that it might have missed",
        discussion: """
            With --notice-url the worker posts one signed notice when an account is disconnected, connected again or \
            loses scopes, when its refresh token is about to end, when a reused token ends a session, and when a user is deleted. It tries for a day until \
            the notice is accepted. docs/services.md#notices describes a notice and how to check its signature.
            """,
        settings: [.config, .database],
        subcommands: [testNotice, replayNotices],
        run: nil
    )

    private static let googleEvents = Command(
        words: ["google-events"],
        summary: "let Google report revoked tokens and accounts in danger immediately",
        discussion: """
            Google's Cross-Account Protection posts an event to a URL when a user revokes access, changes a password \
            or loses the account. The worker receives such events at /v1/google/security-events on its public \
            listener, and acts within a second. Each Cloud project has one stream; it is managed with the key of a \
            service account with the role roles/riscconfigs.admin, in a project where the RISC API is enabled.
            """,
        settings: [.config, .caFile],
        subcommands: [registerEvents, showEvents, verifyEvents],
        run: nil
    )

    private static let store = Command(
        words: ["store"],
        summary: "move all data to another database, or confirm the clock that deletes old data",
        discussion: """
            The worker stores its data in a SQLite file, or in a PostgreSQL database that many workers share. \
            docs/postgres.md says when to move from one to the other, and how.
            """,
        settings: [.config],
        subcommands: [copyStore, showClock],
        run: nil
    )

    private static let configuration = Command(
        words: ["config"],
        summary: "show the settings and where they come from",
        discussion: """
            Settings are flags, environment variables, or lines of the configuration file, in this order of \
            precedence. docs/settings.md lists them.
            """,
        settings: [.config],
        subcommands: [showConfiguration],
        run: nil
    )

    private static let results = Command(
        words: ["results"],
        summary: "store results that were kept outside the database",
        discussion: """
            A worker that stops while its database is not writable saves Google's answers in a spill file. The next \
            start, and every command that opens the database, stores them. docs/operate.md#spill-files says when that \
            needs a person.
            """,
        settings: [.config, .database, .keyFile, .keyCommand],
        subcommands: [recoverResults],
        run: nil
    )
}
