internal import Base
internal import Storage

/// Pages in the order of `since`, for people: the longest in its state first.
extension GrantPageRequest {
    /// The grants that a page in this order reads: all of them each time, in less than a second.
    static let maximumSorted = 5_000
    private static let readAtOnce = 500

    /// A page of all grants that fit.
    struct SortedPage {
        let grants: [Grant]
        let next: String?
        /// The number of all that fit.
        let count: Int
    }

    /// The place of a grant in the order.
    private struct Place: Comparable {
        let since: Timestamp
        let grant: GrantID

        init(of grant: Grant) {
            since = grant.since
            self.grant = grant.id
        }

        init?(_ text: String) {
            let parts = text.split(separator: "-")
            guard parts.count == 2, parts[0].count <= 15, let milliseconds = Int64(parts[0]),
                let grant = GrantID(String(parts[1]))
            else { return nil }
            since = Timestamp(milliseconds: milliseconds)
            self.grant = grant
        }

        var text: String { "\(since.milliseconds)-\(grant)" }

        static func < (left: Place, right: Place) -> Bool {
            left.since == right.since ? left.grant.rawValue < right.grant.rawValue : left.since < right.since
        }
    }

    /// Returns a page in the order of `since`, or `nil` if that would read too many grants, or if the page before was
    /// in another order.
    func pageBySince(of store: any Store, for service: Service, at now: Timestamp) async throws -> SortedPage? {
        let place = after.flatMap { Place($0) }
        if after != nil, place == nil { return nil }
        guard let all = try await everyGrant(of: store, for: service, at: now) else { return nil }
        let sorted = all.sorted { Place(of: $0) < Place(of: $1) }
        var rest = sorted[...]
        if let place { rest = rest.drop { Place(of: $0) <= place } }
        let page = Array(rest.prefix(limit))
        var next: String?
        if rest.count > page.count, let last = page.last { next = Place(of: last).text }
        return SortedPage(grants: page, next: next, count: sorted.count)
    }

    /// Returns all grants that fit, or `nil` if too many would be read.
    private func everyGrant(of store: any Store, for service: Service, at now: Timestamp) async throws -> [Grant]? {
        switch service.users {
        case .present:
            return []
        case .only(let users):
            guard users.count <= Self.maximumSortedUsers else { return nil }
            var found: [Grant] = []
            for user in users {
                found += try await store.grants(ofUser: user)
                    .filter { filter.matches($0, at: now) && service.covers($0.connection) }
            }
            return found
        case .everything:
            var found: [Grant] = []
            var last: GrantID?
            for _ in 0..<Self.maximumSorted / Self.readAtOnce {
                let read = try await store.grants(after: last, in: filter.state, atMost: Self.readAtOnce)
                found += read.filter { filter.matches($0, at: now) && service.covers($0.connection) }
                if read.count < Self.readAtOnce { return found }
                last = read.last?.id
            }
            return nil
        }
    }

    /// Each user of an operator who may see only some is a query.
    private static let maximumSortedUsers = 200
}
