extension CommandSpecification {
    /// The whole program: the daemon at the root, the commands below it.
    package static let program: CommandSpecification = .init(
        words: [],
        summary: "keeps stored Google OAuth grants alive",
        discussion: [
            """
            Without a command it runs the worker in the foreground: it refreshes each stored grant before its access \
            token expires, records when Google ends a grant, and writes each event to the metrics log \
            (docs/metrics-log.md). SIGTERM stops it gracefully, a second SIGTERM immediately. SIGHUP reloads: it reads \
            the configuration again and reopens the metrics log.
            """,
            """
            It serves requests and sends notices only if a setting enables that: the app's routes (--listen), fresh \
            tokens, metrics and health (--listen-internal), and notices to the backend (--notice-url). docs/serving.md \
            shows how to turn each on.
            """,
            """
            It stores its data in a SQLite file, or in a PostgreSQL database that many workers share (--database \
            postgres://USER@HOST/NAME); docs/scaling.md says when and how to move.
            """,
            """
            First steps: make a key ring (refresh-worker keys generate), import grants (refresh-worker grants import \
            FILE), check the set-up (refresh-worker doctor), then start the worker.
            """,
            """
            Settings are flags, environment variables, or KEY=value lines of the file named by --config, in this order \
            of precedence. The variable and the key of --max-rate is REFRESH_WORKER_MAX_RATE, and so on. An empty \
            value counts as not set. A changed setting takes a restart, unless its description says that a reload \
            applies it. Tokens and keys are never arguments, because every user of the machine can read those: they \
            come from standard input or from a file.
            """,
        ],
        settings: Setting.Name.allCases,
        examples: [
            Example(
                line: "refresh-worker --config /etc/refresh-worker/refresh-worker.conf",
                purpose: "run the worker as its service does"
            ),
            Example(
                line: "refresh-worker --client-id 1234-abc.apps.googleusercontent.com --run-once",
                purpose: "refresh the due grants and exit, from cron"
            ),
            Example(line: "refresh-worker grants import --help", purpose: "learn about one command"),
        ],
        exitCodes: [.success, .usage, .internalFailure, .cannotCreate, .inputOutput, .leftForLater, .configuration],
        subcommands: [
            grants, users, token, services, keys, notices, googleEvents, status, doctor, backup, store, results,
            version, help,
        ],
        make: { _ in .work }
    )

    private static let token = CommandSpecification(
        words: ["token"],
        summary: "print a fresh access token of a user",
        discussion: [
            """
            Prints the access token alone on standard output; with --json as an object with the fields of the answer \
            that a service gets from the internal listener (docs/vending.md). A stored token that is valid long enough \
            is printed immediately; otherwise the grant is refreshed, never by this command and a running worker at \
            the same time. Problems are reported on standard error, and the exit code shows their kind.
            """,
            """
            SIGTERM and SIGINT stop it: no more requests are sent, a request in flight has 20 seconds for its answer, \
            which is stored, and no token is printed. A second signal ends it immediately.
            """,
        ],
        operands: [.user("the user whose token is wanted")],
        options: [
            OptionSpecification(
                name: "min-ttl",
                kind: .seconds(0...86_400),
                summary: "the time for which the token must be valid at least. Default: 60"
            ),
            .jsonObject,
        ],
        settings: [.config, .database, .keyFile, .clientID, .clientSecretFile, .tokenEndpoint, .caFile, .logLevel],
        examples: [
            Example(
                line: "refresh-worker token alice --min-ttl 300 > /run/user/1000/token",
                purpose: "a token that is valid for five more minutes, not shown on the terminal"
            )
        ],
        exitCodes: [
            .success, .usage, .unknownUser, .googleUnreachable, .internalFailure, .inputOutput, .leftForLater,
            .userMustAct, .configuration, .interrupted, .terminated,
        ],
        make: { arguments in
            .vendToken(
                user: arguments.operand,
                minimumLifetime: arguments.seconds("min-ttl", otherwise: 60),
                isJSON: arguments.has("json")
            )
        }
    )

    private static let status = CommandSpecification(
        words: ["status"],
        summary: "show the number of grants by state, the due ones, and problems",
        discussion: [
            """
            Reads the database, with or without a running worker. It shows the grants by state, due and overdue, the \
            breaker and the pace of each client id, the live workers and their keys, and refresh tokens that are about \
            to expire. docs/status.md describes each field of the JSON. The exit code is 0 if all is well, 1 if \
            something needs attention, and 2 if the status is unknown. Each concern names a section of docs/runbook.md.
            """
        ],
        options: [
            OptionSpecification(name: "json", kind: .toggle, summary: "one JSON object instead of text"),
            OptionSpecification(
                name: "watch",
                kind: .toggle,
                summary: """
                    every two seconds until Ctrl-C: redraws on a terminal, writes one line for each change elsewhere; \
                    with --json one object after each change
                    """
            ),
        ],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [
            Example(line: "refresh-worker status", purpose: "a report for people"),
            Example(line: "refresh-worker status --json | jq -r .verdict", purpose: "ok or attention, for a monitor"),
            Example(line: "refresh-worker status --watch", purpose: "during an upgrade or an outage"),
        ],
        exitCodes: [.success, .concerns, .cannotTell, .usage, .configuration],
        make: { $0.has("watch") ? .watchStatus(isJSON: $0.has("json")) : .showStatus(isJSON: $0.has("json")) }
    )

    private static let doctor = CommandSpecification(
        words: ["doctor"],
        summary: "check the set-up and say what to fix",
        discussion: [
            """
            Checks the configuration, the modes and owners of files, the key ring, the secrets and the services of the \
            listeners, their addresses, the database and its spill files, the clock, the client ids and the endpoints, \
            and gives advice for each fault. It changes nothing. It refuses the settings that the daemon refuses. It \
            asks the token endpoint with a made-up token, which shows if the endpoint knows the client id. If root runs \
            it, it checks as the owner of the database or of the key ring.
            """
        ],
        options: [.jsonObject],
        settings: Setting.Name.allCases.filter { $0 != .runOnce },
        examples: [
            Example(
                line: "sudo -u refresh-worker refresh-worker doctor --config /etc/refresh-worker/refresh-worker.conf",
                purpose: "as the service's user, with the service's configuration"
            ),
            Example(
                line: """
                    refresh-worker doctor --json | jq -r '.checks[] | select(.result != "ok") | .advice // .text'
                    """,
                purpose: "only what to do"
            ),
        ],
        exitCodes: [.success, .usage, .googleUnreachable, .internalFailure, .inputOutput, .configuration],
        make: { .examine(isJSON: $0.has("json")) }
    )

    private static let backup = CommandSpecification(
        words: ["backup"],
        summary: "copy the database while the worker runs",
        discussion: [
            """
            Writes a complete, consistent copy of the SQLite file. Tokens in it stay sealed: keep the key ring apart \
            from the copy, and keep both. An existing file is not overwritten. For a PostgreSQL database it prints the \
            command of pg_dump that does the same.
            """
        ],
        operands: [.file("the file to create")],
        options: [.jsonObject],
        settings: [.config, .database, .logLevel],
        examples: [
            Example(line: "refresh-worker backup /var/backups/grants.sqlite", purpose: "a copy for tonight")
        ],
        exitCodes: [
            .success, .usage, .internalFailure, .cannotCreate, .inputOutput, .leftForLater, .configuration,
        ],
        make: { .backUp(file: $0.operand, isJSON: $0.has("json")) }
    )

    private static let version = CommandSpecification(
        words: ["version"],
        summary: "print the version",
        discussion: [
            """
            Prints the program's version, its commit if it was built from one, and the versions of the libraries that \
            it runs with. --version does the same.
            """
        ],
        options: [.jsonObject],
        exitCodes: [.success, .usage],
        make: { .showVersion(isJSON: $0.has("json")) }
    )

    private static let help: CommandSpecification = .init(
        words: ["help"],
        summary: "explain a command",
        discussion: ["refresh-worker help COMMAND and refresh-worker COMMAND --help are the same, and so is -h."],
        options: [
            OptionSpecification(
                name: "format",
                kind: .choice(HelpForm.allCases.map(\.rawValue), as: "FORM"),
                summary: """
                    print a manual page or the completions of a shell, for an installation: \
                    \(HelpForm.allCases.map(\.rawValue).joined(separator: ", "))
                    """
            )
        ],
        examples: [
            Example(line: "refresh-worker help grants import", purpose: "explain grants import"),
            Example(
                line: "refresh-worker help --format bash > ~/.local/share/bash-completion/completions/refresh-worker",
                purpose: "completions where make install did not put them"
            ),
        ],
        exitCodes: [.success, .usage],
        make: { arguments in
            let form = HelpForm(rawValue: arguments.options["format"] ?? "") ?? .commandManual
            return .showHelp(text: form.text(of: program))
        }
    )
}
