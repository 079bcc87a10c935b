internal import Base
internal import HTTPServer
internal import Storage

/// The query of a request for a page of grants: `state`, `limit` and `after`.
struct GrantPageRequest: Sendable {
    private static let defaultLimit = 100
    private static let maximumLimit = 500

    private let state: GrantState?
    private let limit: Int
    /// The `next` of the page before.
    private let after: String?

    init(_ query: [ServerRequest.Field]) throws(APIError) {
        state = try Self.value("state", in: query, mustBe: "a state of a grant") { GrantState(rawValue: $0) }
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
    ) throws(APIError) -> Value? {
        let texts = query.filter { $0.name == name }.map(\.value)
        guard let text = texts.first else { return nil }
        guard texts.count == 1, let value = read(text) else {
            throw .invalidRequest("\(name) must be given once, as \(requirement)")
        }
        return value
    }

    /// Returns the grants of the service's users, and the `after` of the next page if there might be one.
    func page(of store: any Store, for service: Service) async throws -> (grants: [Grant], next: String?) {
        switch service.users {
        case .everything:
            let last = after.map { GrantID($0) }
            if last == .some(nil) { throw APIError.invalidRequest("after must be the next of another page") }
            let grants = try await store.grants(after: last ?? nil, in: state, atMost: limit)
            return (grants, grants.count == limit ? grants.last?.id.description : nil)
        case .present: return ([], nil)
        case .only(let users):
            // Read by name, and continued by name: a place in the whole store would show that others have grants.
            let rest = users.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.drop { user in
                after.map { !$0.utf8.lexicographicallyPrecedes(user.utf8) } ?? false
            }
            var grants: [Grant] = []
            for user in rest.prefix(limit) {
                guard let grant = try await store.grant(ofUser: user) else { continue }
                if state == nil || grant.state == state { grants.append(grant) }
            }
            return (grants, rest.count > limit ? rest.prefix(limit).last : nil)
        }
    }
}
