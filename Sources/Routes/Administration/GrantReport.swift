package import Base
internal import HTTPServer
package import Storage

/// A grant as JSON, as `grants list` and `grants show` and the routes of administration return it.
extension Grant {
    /// Adds all fields except the tokens.
    package func write(to line: inout JSONLine) {
        line.field("user_id", userID)
        line.field("state", state.rawValue)
        line.fieldOrNull("reason", reason == .none ? nil : reason.rawValue)
        line.field("since", since.iso8601)
        line.fieldOrNull("google_email", owner.email)
        line.fieldOrNull("scope", scope.isEmpty ? nil : scope)
        line.field("client_id", clientID)
        line.fieldOrNull("expires_at", accessToken?.expiresAt.iso8601)
        line.fieldOrNull("due_at", dueAt?.iso8601)
        line.fieldOrNull("last_success_at", lastSuccessAt?.iso8601)
        line.field("attempts", attempts)
        line.field("generation", generation)
        line.field("grant", id.description)
    }

    /// Adds the same fields and the grant's warnings.
    package func writeWithWarnings(to line: inout JSONLine, at now: Timestamp) {
        write(to: &line)
        line.fieldOrNull("refresh_token_expires_at", refreshToken?.expiresAt?.iso8601)
        line.strings("warnings", GrantWarning.all(of: self, at: now).map(\.rawValue))
    }
}

/// The state of the revocation at Google after a grant has ended here.
package enum RevocationEnd: String, Sendable {
    /// Google has revoked the grant, or there was no token to revoke.
    case done
    /// A running worker tries again for a day.
    case pending
    /// Another stored grant shares the Google account and would end with it.
    case shared = "not_requested"

    /// The state right after the end, before Google is asked.
    fileprivate init(of grant: Grant, isShared: Bool) {
        self = isShared ? .shared : grant.revocationAskedAt == nil ? .done : .pending
    }

    /// Adds what the end of a user's grant says.
    package func write(to line: inout JSONLine, ofUser user: String) {
        line.field("user_id", user)
        line.field("revocation", rawValue)
    }
}

extension GrantEnding {
    /// The state of the revocation right after the end.
    package var plannedEnd: RevocationEnd { RevocationEnd(of: grant, isShared: isShared) }
}

extension AccountDeletion {
    /// The state of the revocation right after the deletion, or `nil` if there is no grant.
    package var plannedEnd: RevocationEnd? { grant.map { RevocationEnd(of: $0, isShared: isShared) } }

    /// Adds what the deletion of a user says.
    package func write(to line: inout JSONLine, ofUser user: String, _ revocation: RevocationEnd?) {
        line.field("user_id", user)
        line.field("ended_sessions", endedSessions)
        line.fieldOrNull("revocation", revocation?.rawValue)
    }
}

extension GrantRetry {
    /// The reason why a grant was left as it is, which continues a sentence about it, or `nil` if all is well.
    package func problem(of grant: Grant) -> String? {
        switch self {
        case .due, .inFlight, .accountDisabled: return nil
        case .awaitingConfirmation:
            let due = grant.dueAt.map { " at \($0.iso8601Seconds)" } ?? ""
            return "waits for the confirmation of a refusal\(due), which must not come early"
        case .noRefreshToken: return "does not have a refresh token: the user must sign in again"
        case .ended:
            let reason = grant.reason == .none ? "" : " (\(grant.reason))"
            let repair =
                grant.reason == .clientMismatch
                ? "; if the client id is wrong, grants set-client brings the grant back" : ""
            return "is \(grant.state.rawValue)\(reason): the user must sign in again\(repair)"
        }
    }
}

/// The query of a request for a page of grants.
struct GrantPageRequest: Sendable {
    private static let names = ["state", "reason", "client", "expired", "limit", "after"]
    private static let defaultLimit = 100
    private static let maximumLimit = 500
    /// The grants that one request reads to find those that fit, so that a rare reason among millions takes seconds.
    private static let maximumRead = 20_000

    private static let foreignPage = ServiceError.invalidRequest("after must be the next of another page")

    let filter: GrantFilter
    private let limit: Int
    /// The `next` of the page before.
    private let after: String?

    init(_ query: [ServerRequest.Field]) throws(ServiceError) {
        try query.checkNames(Self.names)
        filter = GrantFilter(
            state: try Self.value("state", in: query, mustBe: "a state of a grant") { GrantState(rawValue: $0) },
            reason: try Self.value("reason", in: query, mustBe: "a reason of a grant") { text in
                let reason = GrantReason(rawValue: text)
                return reason.rawValue == text ? reason : nil
            },
            clientID: try Self.value("client", in: query, mustBe: "a client id") { $0.isEmpty ? nil : $0 },
            isExpired: try Self.value("expired", in: query, mustBe: "true or false") { Bool($0) } ?? false
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
        case .everything: return try await page(of: store, at: now)
        case .present: return ([], nil)
        case .only(let users):
            // Read by name, and continued by the place in this list: one in the whole store would show that others have
            // grants, and a name does not belong into an address.
            let first = after.flatMap { $0.utf8.count <= 9 && $0.isDecimalNumber ? Int($0) : nil } ?? 0
            guard after == nil || after == String(first) else { throw Self.foreignPage }
            let rest = users.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.dropFirst(first)
            var grants: [Grant] = []
            for user in rest.prefix(limit) {
                guard let grant = try await store.grant(ofUser: user) else { continue }
                if filter.matches(grant, at: now) { grants.append(grant) }
            }
            return (grants, rest.count > limit ? String(first + limit) : nil)
        }
    }

    private func page(of store: any Store, at now: Timestamp) async throws -> (grants: [Grant], next: String?) {
        var last = after.flatMap { GrantID($0) }
        guard after == nil || last != nil else { throw Self.foreignPage }
        let size = filter.isOfStateOnly ? limit : Self.maximumLimit
        var grants: [Grant] = []
        for _ in 0..<Self.maximumRead / size {
            let read = try await store.grants(after: last, in: filter.state, atMost: size)
            for grant in read {
                last = grant.id
                if filter.matches(grant, at: now) { grants.append(grant) }
                if grants.count == limit { return (grants, last?.description) }
            }
            if read.count < size { return (grants, nil) }
        }
        return (grants, last?.description)
    }
}

extension [ServerRequest.Field] {
    /// Throws if a field has another name: a misspelt filter would list every grant.
    ///
    /// The error does not repeat the name, which can be anything.
    func checkNames(_ names: [String]) throws(ServiceError) {
        guard !allSatisfy({ names.contains($0.name) }) else { return }
        let known = names.isEmpty ? "none" : names.joined(separator: ", ")
        throw .invalidRequest("the query or form has an unknown name. Known here: \(known)")
    }
}

/// A condition of a connected grant that an operator should know about.
package enum GrantWarning: String, Sendable {
    /// The refresh token expires soon.
    case refreshTokenEnds = "refresh_token_ends"
    /// The grant was not refreshed for so long that Google might expire its refresh token.
    case idle
    /// The access token cannot be renewed when it expires.
    case noRefreshToken = "no_refresh_token"

    package static func all(of grant: Grant, at now: Timestamp) -> [GrantWarning] {
        guard grant.state.isConnected else { return [] }
        guard let refreshToken = grant.refreshToken else { return [.noRefreshToken] }
        var warnings: [GrantWarning] = []
        if let end = refreshToken.expiresAt, end < now + GrantStatistics.warningBeforeEnd {
            warnings.append(.refreshTokenEnds)
        }
        if (grant.lastSuccessAt ?? grant.createdAt) < now - GrantStatistics.idleBeforeWarning { warnings.append(.idle) }
        return warnings
    }

    package var sentence: String {
        switch self {
        case .refreshTokenEnds: "the refresh token expires soon: have the user sign in again before then"
        case .idle: "not refreshed for months: Google forgets refresh tokens that are not used for six"
        case .noRefreshToken: "no refresh token is stored: the user must sign in again when the access token expires"
        }
    }
}
