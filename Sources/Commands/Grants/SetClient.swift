import Base
import Storage
import Worker

/// `grants set-client`: corrects the client id of stored grants.
struct SetClient: Command {
    static let specification = CommandSpecification(
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
            OptionSpecification("from", .clientID, "the client id that is stored now; needed"),
            OptionSpecification("to", .clientID, "the right client id; needed"),
            .json,
        ],
        settings: [.config, .database, .keyFile, .clientID, .logLevel],
        examples: [
            Example(
                """
                refresh-worker grants set-client --from 1234-old.apps.googleusercontent.com \
                --to 1234-abc.apps.googleusercontent.com
                """,
                "after an import with a wrong client id"
            )
        ],
        exitCodes: .ofDatabase()
    )

    private let former: String
    private let clientID: String

    init(_ arguments: CommandArguments) throws(UsageError) {
        let ids = try arguments.needed("from", "to")
        (former, clientID) = (ids[0], ids[1])
        if former == clientID { throw arguments.refusal(["--from and --to are the same client id"]) }
    }

    func run(in context: CommandContext) async throws -> ExitCode {
        guard context.configuration.clientIDs.contains(clientID) else {
            let known = context.configuration.clientIDs.map { "\(DisplayedText($0))" }.joined(separator: ", ")
            throw CommandFailure(
                .configuration,
                """
                the client id \(DisplayedText(clientID)) is not configured, so no worker would refresh its grants: add it \
                with --client-id, or check --to; \(known.isEmpty ? "no client id is configured" : "configured: \(known)")
                """
            )
        }
        let tally = try await context.withExistingStore(for: .changing) { store in
            var tally = ClientChangeTally()
            for try await page in GrantPages(store: store, state: nil, size: ListGrants.pageSize) {
                let ids = page.filter { $0.clientID == former }.map(\.id)
                tally.add(try await move(ids, in: store, at: context.time.now))
            }
            return tally
        }
        context.answer(tally.sentence(from: former, to: clientID), json: tally.write)
        return tally.inFlight == 0 ? .success : .leftForLater
    }

    /// Moves the grants that still have the former client id: the app may have connected one since it was read.
    private func move(
        _ ids: [GrantID],
        in store: any Store,
        at now: Timestamp
    ) async throws -> ClientChangeTally {
        guard !ids.isEmpty else { return ClientChangeTally() }
        return try await store.transact { transaction in
            var tally = ClientChangeTally()
            try transaction.willRead(grants: ids, healthOf: [])
            for id in ids {
                guard let grant = try transaction.grant(id), grant.clientID == former else { continue }
                tally.count(try ClientChange.move(grant, to: clientID, in: transaction, at: now))
            }
            return tally
        }
    }
}

/// The numbers of grants that `grants set-client` moved, and of those that it left.
struct ClientChangeTally: Equatable, Sendable {
    private(set) var moved = 0
    private(set) var due = 0
    private(set) var inFlight = 0

    mutating func count(_ outcome: ClientChange.Outcome) {
        switch outcome {
        case .moved: moved += 1
        case .movedAndDue:
            moved += 1
            due += 1
        case .inFlight: inFlight += 1
        }
    }

    mutating func add(_ other: Self) {
        moved += other.moved
        due += other.due
        inFlight += other.inFlight
    }

    func write(to line: inout JSONLine) {
        line.field("moved", moved)
        line.field("due", due)
        line.field("in_flight", inFlight)
    }

    func sentence(from former: String, to clientID: String) -> String {
        let subject = moved == 1 ? "1 grant was" : "\(moved) grants were"
        var text = "\(subject) moved from \(DisplayedText(former)) to \(DisplayedText(clientID))"
        if due > 0 {
            text += "; \(due) of them had been refused as of another client id and \(due == 1 ? "is" : "are") due now"
        }
        if inFlight > 0 {
            text +=
                "; \(inFlight) \(inFlight == 1 ? "is" : "are") being refreshed at this moment: run the command again"
        }
        return text
    }
}
