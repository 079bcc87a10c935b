import Base
import Status

extension Command {
    /// `status`: reports on everything that is stored, with or without a running worker.
    static let showStatus = Command(
        words: ["status"],
        summary: "show the number of grants by state, the due ones, and problems",
        discussion: """
            Reads the database, with or without a running worker. Before that it updates the tables of an earlier \
            version and stores spilled results. It shows the grants by state, due and overdue, the breaker and the \
            pace of each client id, the live workers and their keys, and refresh tokens that are about to expire. \
            docs/status.md describes each field of the JSON. The exit code is 0 if all is well, 4 if users are without \
            tokens now, 3 if they will be soon, 1 if a person should look within a day, and 2 if the status is unknown. \
            Each concern names a section of docs/runbook.md.
            """,
        options: [
            .toggle("json", "one JSON object instead of text"),
            .toggle(
                "watch",
                """
                every two seconds until Ctrl-C: redraws on a terminal, writes one line for each change elsewhere; \
                with --json one object after each change
                """
            ),
        ],
        settings: [
            .config, .database, .keyFile, .keyCommand, .clientID, .serverClientID, .maxRate, .listen, .noticeURL,
            .logLevel,
        ],
        examples: [
            "refresh-worker status": "a report for people",
            "refresh-worker status --json | jq -r .verdict": "ok, now, soon or tomorrow, for a monitor",
            "refresh-worker status --watch": "during an upgrade or an outage",
        ],
        exitCodes: [.success, .lookTomorrow, .cannotTell, .soonWithoutTokens, .withoutTokens, .usage, .configuration]
    ) { arguments, context, output in
        do {
            if arguments.has("watch") { return try await StatusWatch.run(in: context, printingTo: output) }
            let snapshot = try await StatusSnapshot.read(in: context)
            let text = output.isJSON ? snapshot.json.text + "\n" : snapshot.text(for: output.form)
            Output.standard.write(DocumentFolder.current.located(text))
            return ExitCode(snapshot.findings.severity)
        } catch {
            // A monitor must not take a status that is unknown for a good or a bad one.
            throw CommandError(.cannotTell, CommandError(error).message)
        }
    }
}

extension ExitCode {
    /// The exit code of `status`.
    init(_ severity: Severity?) {
        self =
            switch severity {
            case nil: .success
            case .tomorrow: .lookTomorrow
            case .soon: .soonWithoutTokens
            case .now: .withoutTokens
            }
    }
}
