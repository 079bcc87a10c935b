extension Command {
    /// The program without a command: the daemon, or one pass over the due grants with `--run-once`.
    static let runWorker = Command(
        words: [],
        summary: "keeps stored Google OAuth grants alive",
        discussion: """
            Without a command it runs the worker in the foreground: it refreshes each stored grant before its access \
            token expires, records when Google ends a grant, and writes each event to the metrics log \
            (docs/metrics-log.md). SIGTERM stops it gracefully, a second SIGTERM immediately. SIGHUP reloads: it reads \
            the configuration again and reopens the metrics log.

            It serves requests and sends notices only if a setting enables that: the app's routes (--listen), fresh \
            tokens, metrics and health (--listen-internal), and notices to the backend (--notice-url). docs/operate.md \
            shows how to turn each on.

            It stores its data in a SQLite file, or in a PostgreSQL database that many workers share (--database \
            postgres://USER@HOST/NAME); docs/postgres.md says when and how to move.

            First steps: make a key ring (refresh-worker keys generate), import grants (refresh-worker grants import \
            FILE), check the set-up (refresh-worker doctor), then start the worker.

            Settings are flags, environment variables, or KEY=value lines of the file named by --config, in this order \
            of precedence. The variable and the key of --max-rate is REFRESH_WORKER_MAX_RATE, and so on. An empty \
            value counts as not set. A changed setting takes a restart, unless its description says that a reload \
            applies it. Tokens and keys are never arguments, because every user of the machine can read those: they \
            come from standard input or from a file.
            """,
        settings: Setting.Name.allCases,
        examples: [
            "refresh-worker --config /etc/refresh-worker/refresh-worker.conf": "run the worker as its service does",
            "refresh-worker --client-id 1234-abc.apps.googleusercontent.com --run-once":
                "refresh the due grants and exit, from cron",
            "refresh-worker grants import --help": "learn about one command",
        ],
        exitCodes: .ofDatabase(.cannotCreate)
    ) { _, context, _ in
        guard !context.configuration.runsOnce else { return try await Pass(context).run() }
        return try await Daemon.run(context)
    }
}
