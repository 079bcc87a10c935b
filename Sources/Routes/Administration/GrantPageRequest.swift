internal import Base
internal import HTTPServer
internal import Storage

/// The query of a request for a page of grants.
struct GrantPageRequest: Sendable {
    private static let names = ["state", "reason", "client", "expired", "label", "limit", "after"]
    private static let defaultLimit = 100
    private static let maximumLimit = 500
    /// The grants that one request reads to find those that fit, so that a rare reason among millions takes seconds.
    private static let maximumRead = 20_000

    private static let foreignPage = ServiceError.invalidRequest("after must be the next of another page")

    let filter: GrantFilter
    let limit: Int
    /// The `next` of the page before.
    let after: String?

    init(_ query: [ServerRequest.Field]) throws(ServiceError) {
        try query.checkNames(Self.names)
        filter = GrantFilter(
            state: try Self.value("state", in: query, mustBe: "a state of a grant") { GrantState(rawValue: $0) },
            reason: try Self.value("reason", in: query, mustBe: "a reason of a grant") { text in
                let reason = GrantReason(rawValue: text)
                return reason.rawValue == text ? reason : nil
            },
            clientID: try Self.value("client", in: query, mustBe: "a client id") { $0.isEmpty ? nil : $0 },
            isExpired: try Self.value("expired", in: query, mustBe: "true or false") { Bool($0) } ?? false,
            label: try Self.value("label", in: query, mustBe: "NAME=VALUE") { GrantFilter.Label($0) }
        )
        limit =
            try Self.value("limit", in: query, mustBe: "a whole number from 1 to \(Self.maximumLimit)") { text in
                guard text.utf8.count <= 3, text.isDecimalNumber, let number = Int(text) else { return nil }
                return (1...Self.maximumLimit).contains(number) ? number : nil
            } ?? Self.defaultLimit
        after = try Self.value("after", in: query, mustBe: "the next of another page") { $0.isEmpty ? nil : $0 }
    }

    private static func value<Value>(
        _ name: String,
        in query: [ServerRequest.Field],
        mustBe requirement: String,
        _ read: (String) -> Value?
    ) throws(ServiceError) -> Value? {
        let texts = query.filter { $0.name == name }.map(\.value)
        guard let text = texts.first else { return nil }
        guard texts.count == 1, let value = read(text) else {
            throw .invalidRequest("\(name) must be given once, as \(requirement)")
        }
        return value
    }

    /// Returns the grants of the service's users, and the `after` of the next page if there might be one.
    func page(
        of store: any Store,
        for service: Service,
        at now: Timestamp
    ) async throws -> (grants: [Grant], next: String?) {
        switch service.users {
        case .everything: return try await page(of: store, at: now) { service.covers($0.connection) }
        case .present: return ([], nil)
        case .only(let users):
            // Read by name, and continued by the place in this list: one in the whole store would show that others have
            // grants, and a name does not belong into an address.
            let first = after.flatMap { $0.utf8.count <= 9 && $0.isDecimalNumber ? Int($0) : nil } ?? 0
            guard after == nil || after == String(first) else { throw Self.foreignPage }
            let rest = users.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.dropFirst(first)
            var grants: [Grant] = []
            for user in rest.prefix(limit) {
                grants += try await store.grants(ofUser: user).filter {
                    filter.matches($0, at: now) && service.covers($0.connection)
                }
            }
            return (grants, rest.count > limit ? String(first + limit) : nil)
        }
    }

    private func page(
        of store: any Store,
        at now: Timestamp,
        where isVisible: (Grant) -> Bool
    ) async throws -> (grants: [Grant], next: String?) {
        var last = after.flatMap { GrantID($0) }
        guard after == nil || last != nil else { throw Self.foreignPage }
        let size = filter.isOfStateOnly ? limit : Self.maximumLimit
        var grants: [Grant] = []
        for _ in 0..<Self.maximumRead / size {
            let read = try await store.grants(after: last, in: filter.state, atMost: size)
            for grant in read {
                last = grant.id
                if filter.matches(grant, at: now), isVisible(grant) { grants.append(grant) }
                if grants.count == limit { return (grants, last?.description) }
            }
            if read.count < size { return (grants, nil) }
        }
        return (grants, last?.description)
    }
}
