import Base
import Crypto
import Records
import Storage

extension Command {
    /// The states that a grant can be in, as `--state` takes them.
    /// `grants list`: prints stored grants without their tokens.
    static let listGrants = Command(
        words: ["grants", "list"],
        summary: "list the stored grants and their states",
        discussion: """
            Lists every grant, or those that fit all of the options, with the reason of the state. Never prints a \
            token. On a terminal the columns fit its width; in a pipe or a file no text is cut.
            """,
        options: [
            .json,
            OptionSpecification(
                "state",
                .choice(GrantState.allCases.map(\.rawValue), as: "STATE"),
                "only grants in this state: " + GrantState.allCases.map(\.rawValue).joined(separator: ", ")
            ),
            OptionSpecification(
                "reason",
                .text(as: "REASON", maximumLength: 64, signs: "_"),
                "only grants whose state has this reason, such as client_mismatch"
            ),
            .client("only grants of this client id"),
            .email("grants of users or Google accounts"),
            OptionSpecification("label", .label, "only connections with this label, such as tenant=acme"),
            OptionSpecification("since", .span, "only grants that came into their state in this time, such as 24h"),
            .toggle("expired", "only connected grants without a valid access token"),
            .toggle("unreadable", "only grants with a token that the key ring does not open, because a key is lost"),
            OptionSpecification(
                "sort",
                .choice(SortedGrants.Order.allCases.map(\.rawValue), as: "ORDER"),
                """
                due: the next due first; user: by the user's id; since: the longest in its state first. Default: \
                the order of the database
                """
            ),
            OptionSpecification("limit", .number(1...1_000_000), "at most this many grants"),
        ],
        settings: [.config, .database, .keyFile, .keyCommand, .logLevel],
        examples: [
            "refresh-worker grants list": "a table of all grants",
            "refresh-worker grants list --expired --sort since --limit 20":
                "the grants that have been without a valid token in their state for longest",
            "refresh-worker grants list --state disconnected --since 24h":
                "the users whose consent ended in the last day",
            "refresh-worker grants list --email alice@example.com": "the grant of a person who writes to you",
        ],
        exitCodes: .ofDatabase()
    ) { arguments, context, output in
        let filter = GrantFilter(
            state: arguments["state"].flatMap { GrantState(rawValue: $0) },
            reason: arguments["reason"].map { GrantReason(rawValue: $0) },
            clientID: arguments["client"],
            isExpired: arguments.has("expired"),
            since: try arguments.instant("since", before: context.time.now),
            label: arguments["label"].flatMap { GrantFilter.Label($0) }
        )
        let email = arguments["email"]
        let vault = arguments.has("unreadable") ? try context.openVault() : nil
        @Sendable func fits(_ grant: Grant, at now: Timestamp) throws(CryptoError) -> Bool {
            guard filter.matches(grant, at: now) else { return false }
            guard let vault else { return true }
            return try !grant.opens(with: vault)
        }
        let time = context.time
        let limit = arguments["limit"].flatMap { Int($0) }
        let count = try await context.withExistingStore(for: .reading) { store in
            let columns = try await store.hasOtherConnections ? GrantColumns.withConnections : GrantColumns.all
            var list = Listing(columns, limit: limit, json: output.isJSON ? { $0.write(to: &$1) } : nil)
            guard let order = arguments["sort"].flatMap({ SortedGrants.Order(rawValue: $0) }) else {
                for try await page in GrantPages(store: store, state: filter.state, email: email) {
                    let now = time.now
                    guard try await list.print(page.filter { try fits($0, at: now) }, at: now) else { break }
                }
                return list.count
            }
            // Finds the order first, and then reads the grants again, a page at a time.
            var sorted = SortedGrants(order: order, limit: limit)
            for try await page in GrantPages(store: store, state: filter.state, email: email) {
                let now = time.now
                for grant in page where try fits(grant, at: now) { sorted.add(grant) }
            }
            var rest = sorted.finish()[...]
            while !rest.isEmpty {
                var page: [Grant] = []
                for id in rest.prefix(GrantPages.usualSize) {
                    if let grant = try await store.grant(id), try fits(grant, at: time.now) {
                        page.append(grant)
                    }
                }
                rest = rest.dropFirst(GrantPages.usualSize)
                guard try await list.print(page, at: time.now) else { break }
            }
            return list.count
        }
        if count == 0 && !output.isJSON {
            let selectsAll = filter == GrantFilter() && email == nil && vault == nil
            Output.error.line(selectsAll ? "no grant is stored" : "no stored grant fits all of these options")
        }
        return .success
    }
}
