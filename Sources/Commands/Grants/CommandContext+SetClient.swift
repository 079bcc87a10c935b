import Base
import Storage
package import Worker

/// `grants set-client`: corrects the client id of stored grants.
extension CommandContext {
    package func setClient(from former: String, to clientID: String, isJSON: Bool) async throws -> ExitCode {
        guard configuration.clientIDs.contains(clientID) else {
            let known = configuration.clientIDs.map { "\(DisplayedText($0))" }.joined(separator: ", ")
            throw CommandFailure(
                .configuration,
                """
                the client id \(DisplayedText(clientID)) is not configured, so no worker would refresh its grants: add it \
                with --client-id, or check --to; \(known.isEmpty ? "no client id is configured" : "configured: \(known)")
                """
            )
        }
        let tally = try await withExistingStore(for: .changing) { store in
            var tally = ClientChangeTally()
            for try await page in GrantPages(store: store, state: nil, size: Self.pageSize) {
                let ids = page.filter { $0.clientID == former }.map(\.id)
                tally.add(try await move(ids, from: former, to: clientID, in: store))
            }
            return tally
        }
        Output.standard.line(isJSON ? tally.json.text : tally.sentence(from: former, to: clientID))
        return tally.inFlight == 0 ? .success : .leftForLater
    }

    /// Moves the grants that still have the former client id: the app may have connected one since it was read.
    private func move(
        _ ids: [GrantID],
        from former: String,
        to clientID: String,
        in store: any GrantStore
    ) async throws -> ClientChangeTally {
        guard !ids.isEmpty else { return ClientChangeTally() }
        let now = time.now
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

    var json: JSONLine {
        var line = JSONLine()
        line.field("moved", moved)
        line.field("due", due)
        line.field("in_flight", inFlight)
        return line
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
