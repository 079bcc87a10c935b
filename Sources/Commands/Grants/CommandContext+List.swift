import Base
import Crypto
import Scheduler
import Storage
package import Worker

/// `grants list`: prints stored grants without their tokens.
extension CommandContext {
    /// The number of grants read at a time, so that memory does not grow with their number.
    static let pageSize = 500

    package func listGrants(_ options: GrantListOptions) async throws -> ExitCode {
        let filter = GrantFilter(options, vault: options.isUnreadable ? try openVault() : nil)
        let count = try await withExistingStore(for: .reading) { store in
            var list = GrantList(isJSON: options.isJSON, limit: options.limit, time: time)
            if let order = options.order {
                try await listSorted(by: order, filter, from: store, to: &list)
            } else {
                for try await page in GrantPages(store: store, state: filter.state, size: Self.pageSize) {
                    let now = time.now
                    guard try await list.print(page.filter { try filter.matches($0, at: now) }) else { break }
                }
            }
            return list.count
        }
        if count == 0 && !options.isJSON {
            Output.error.line(filter.selectsAll ? "no grant is stored" : "no stored grant fits all of these options")
        }
        return .success
    }

    /// Finds the order first, and then reads the grants again, a page at a time.
    private func listSorted(
        by order: GrantListOptions.Order,
        _ filter: GrantFilter,
        from store: any GrantStore,
        to list: inout GrantList
    ) async throws {
        var sorted = SortedGrants(by: order, limit: list.limit)
        for try await page in GrantPages(store: store, state: filter.state, size: Self.pageSize) {
            let now = time.now
            for grant in page where try filter.matches(grant, at: now) { sorted.add(grant) }
        }
        var rest = sorted.finish()[...]
        while !rest.isEmpty {
            var page: [Grant] = []
            for id in rest.prefix(Self.pageSize) {
                if let grant = try await store.grant(id), try filter.matches(grant, at: time.now) { page.append(grant) }
            }
            rest = rest.dropFirst(Self.pageSize)
            guard try await list.print(page) else { return }
        }
    }
}

/// The output of `grants list`, a page at a time.
private struct GrantList {
    let isJSON: Bool
    let limit: Int?
    let time: any TimeSource
    private(set) var count = 0
    private var table = GrantTable(width: Output.standard.width)
    private let output = BlockingCallQueue(label: "refresh-worker.output")

    init(isJSON: Bool, limit: Int?, time: any TimeSource) {
        self.isJSON = isJSON
        self.limit = limit
        self.time = time
    }

    /// Prints the grants up to the limit; returns `false` once it is reached.
    mutating func print(_ grants: [Grant]) async throws -> Bool {
        let page = limit.map { Array(grants.prefix($0 - count)) } ?? grants
        guard !page.isEmpty else { return limit.map { count < $0 } ?? true }
        count += page.count
        let lines = isJSON ? page.map { GrantDocument.line(of: $0).text } : table.lines(of: page, at: time.now)
        try await output.run { Output.standard.line(lines.joined(separator: "\n")) }
        return limit.map { count < $0 } ?? true
    }
}

/// The grants that `grants list` shows.
struct GrantFilter: Sendable {
    let state: GrantState?
    let reason: GrantReason?
    let clientID: String?
    let isExpired: Bool
    /// The key ring that must not open a token of the grant; `nil` if that does not matter.
    let vault: TokenVault?

    init(_ options: GrantListOptions, vault: TokenVault? = nil) {
        state = options.state.flatMap { GrantState(rawValue: $0) }
        reason = options.reason.map { GrantReason(rawValue: $0) }
        clientID = options.clientID
        isExpired = options.isExpired
        self.vault = vault
    }

    var selectsAll: Bool { state == nil && reason == nil && clientID == nil && !isExpired && vault == nil }

    func matches(_ grant: Grant, at now: Timestamp) throws(SealError) -> Bool {
        guard
            (state == nil || grant.state == state) && (reason == nil || grant.reason == reason)
                && (clientID == nil || grant.clientID == clientID) && (!isExpired || grant.isExpired(at: now))
        else { return false }
        guard let vault else { return true }
        return try !grant.opens(with: vault)
    }
}

extension Grant {
    /// `true` if the grant is connected and has no valid access token, as `ExpiredGrants` counts it.
    fileprivate func isExpired(at now: Timestamp) -> Bool {
        state.isConnected && (accessToken?.expiresAt ?? since) <= now
    }

    /// `true` if the key ring opens every token of the grant, or the grant has none.
    fileprivate func opens(with vault: TokenVault) throws(SealError) -> Bool {
        do throws(SealError) {
            _ = try vault.openRefreshToken(of: self)
            _ = try vault.openAccessToken(of: self)
            return true
        } catch {
            switch error {
            case .unknownKey, .damaged, .malformed: return false
            case .libraryFailure: throw error
            }
        }
    }
}

/// All grants of a store, or those in one state, a page at a time.
struct GrantPages: AsyncSequence {
    let store: any GrantStore
    let state: GrantState?
    let size: Int

    struct Iterator: AsyncIteratorProtocol {
        let pages: GrantPages
        private var last: GrantID?

        init(pages: GrantPages) {
            self.pages = pages
        }

        mutating func next() async throws -> [Grant]? {
            let page = try await pages.store.grants(after: last, in: pages.state, atMost: pages.size)
            guard let lastGrant = page.last else { return nil }
            last = lastGrant.id
            return page
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(pages: self) }
}

/// Grants as a table for people, page by page.
struct GrantTable {
    private var table: TextTable

    /// Creates a table for a terminal of this width; `nil` if it is for a pipe or a file.
    init(width: Int?) {
        table = TextTable(
            [
                TextTable.Column(title: "USER", narrowest: 12),
                TextTable.Column(title: "STATE"),
                TextTable.Column(title: "REASON", narrowest: 12),
                TextTable.Column(title: "SINCE"),
                TextTable.Column(title: "TOKEN ENDS"),
                TextTable.Column(title: "DUE"),
                TextTable.Column(title: "E-MAIL", narrowest: 16),
            ],
            width: width
        )
    }

    /// Returns the lines of the next page, below the titles on the first one.
    mutating func lines(of grants: [Grant], at now: Timestamp) -> [String] {
        table.lines(
            of: grants.map { grant in
                [
                    TerminalText.escaped(grant.userID),
                    grant.state.rawValue,
                    grant.reason == .none ? "-" : grant.reason.rawValue,
                    "\(RelativeTime(grant.since, from: now))",
                    grant.accessToken.map { "\(RelativeTime($0.expiresAt, from: now))" } ?? "-",
                    grant.dueAt.map { "\(RelativeTime($0, from: now))" } ?? "-",
                    grant.owner.email.map { TerminalText.escaped($0) } ?? "-",
                ]
            }
        )
    }
}

/// The ids of the first grants in an order.
///
/// It keeps a short key for each grant instead of the grant, so that the memory for millions of grants stays small.
struct SortedGrants {
    private struct Entry {
        let time: Timestamp?
        let text: String
        let id: GrantID

        /// Entries without a time come last; equal ones are in the order of their ids.
        static func precedes(_ one: Self, _ other: Self) -> Bool {
            switch (one.time, other.time) {
            case (let first?, let second?) where first != second: return first < second
            case (_?, nil): return true
            case (nil, _?): return false
            default: break
            }
            if one.text != other.text { return one.text.utf8.lexicographicallyPrecedes(other.text.utf8) }
            return one.id < other.id
        }
    }

    private let order: GrantListOptions.Order
    private let limit: Int?
    private var entries: [Entry] = []

    init(by order: GrantListOptions.Order, limit: Int?) {
        self.order = order
        self.limit = limit
    }

    mutating func add(_ grant: Grant) {
        switch order {
        case .due: entries.append(Entry(time: grant.dueAt, text: "", id: grant.id))
        case .since: entries.append(Entry(time: grant.since, text: "", id: grant.id))
        case .user: entries.append(Entry(time: nil, text: grant.userID, id: grant.id))
        }
        // Sorted once for as many additions as are kept, so that each costs little.
        if let limit, entries.count >= max(1000, 2 * limit) { truncate(to: limit) }
    }

    /// Returns the ids in their order.
    mutating func finish() -> [GrantID] {
        truncate(to: limit ?? entries.count)
        return entries.map(\.id)
    }

    private mutating func truncate(to count: Int) {
        entries.sort(by: Entry.precedes)
        entries = Array(entries.prefix(count))
    }
}
