import Base
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
