import Base
import Storage

extension Command {
    /// `grants set-client`: corrects the client id of stored grants.
    static let setClient = Command(
        words: ["grants", "set-client"],
        summary: "move grants that were stored for the wrong client id to the right one",
        discussion: """
            Changes the client id of all grants of --from to --to, and prints how many. Grants that Google refused as \
            grants of another client id (client_mismatch, client_mismatch_unconfirmed) are tried again now, also if \
            that had ended them; all others keep their state and due time. The client id of --to must be configured.

            A grant that a worker refreshes at this moment is not moved; the exit code is then 75: run the command \
            again.
            """,
        options: [
            OptionSpecification("from", .clientID, "the client id that is stored now; needed", need: ""),
            OptionSpecification("to", .clientID, "the right client id; needed", need: ""),
            .json,
        ],
        settings: [.config, .database, .keyFile, .keyCommand, .clientID, .logLevel],
        examples: [
            """
            refresh-worker grants set-client --from 1234-old.apps.googleusercontent.com \
            --to 1234-abc.apps.googleusercontent.com
            """: "after an import with a wrong client id"
        ],
        exitCodes: .ofDatabase(),
        check: { arguments throws(CommandError) in
            guard arguments["from"] != arguments["to"] else {
                throw arguments.refusal(["--from and --to are the same client id"])
            }
        }
    ) { arguments, context, output in
        let (former, clientID) = (arguments.needed("from"), arguments.needed("to"))
        guard context.configuration.allClientIDs.contains(clientID) else {
            let known = context.configuration.allClientIDs.map { "\(DisplayedText($0))" }.joined(separator: ", ")
            throw CommandError(
                .configuration,
                """
                the client id \(DisplayedText(clientID)) is not configured, so no worker would refresh its grants: add it \
                with --client-id, or check --to; \(known.isEmpty ? "no client id is configured" : "configured: \(known)")
                """
            )
        }
        let counts = try await context.withExistingStore(for: .changing) { store in
            var counts: [ClientChange: Int] = [:]
            try await store.changeGrants(by: context.time, where: { $0.clientID == former }, counting: &counts) {
                try ClientChange.move($0, to: clientID, in: $1, at: $2)
            }
            return counts
        }
        let (due, inFlight) = (counts[.movedAndDue] ?? 0, counts[.inFlight] ?? 0)
        let moved = (counts[.moved] ?? 0) + due
        var text = moved == 1 ? "1 grant was" : "\(moved) grants were"
        text += " moved from \(DisplayedText(former)) to \(DisplayedText(clientID))"
        if due > 0 {
            text += "; \(due) of them had been refused as of another client id and \(due == 1 ? "is" : "are") due now"
        }
        if inFlight > 0 {
            text +=
                "; \(inFlight) \(inFlight == 1 ? "is" : "are") being refreshed at this moment: run the command again"
        }
        output.answer(text) { line in
            line.field("moved", moved)
            line.field("due", due)
            line.field("in_flight", inFlight)
        }
        return inFlight == 0 ? .success : .leftForLater
    }
}
