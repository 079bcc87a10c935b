extension Notice {
    /// The content of a notice.
    package enum Content: Hashable, Sendable {
        /// A grant changed its state in a way that the profile shows.
        case connection(of: GrantID, from: GrantState, to: GrantState, reason: GrantReason)
        /// An answer to a refresh grants fewer scopes than before; both lists are separated by spaces.
        case lostScopes(of: GrantID, lost: String, granted: String)
        /// A refresh token of a session was presented after its successor was used, so the session has ended.
        case sessionReused(SessionID)
        /// The user was deleted.
        case userDeleted

        /// The grant that the notice is about, if any.
        package var grant: GrantID? {
            switch self {
            case .connection(let grant, _, _, _), .lostScopes(let grant, _, _): grant
            case .sessionReused, .userDeleted: nil
            }
        }

        /// The notice's type, as the backend and the metrics log show it.
        package var type: String {
            switch self {
            case .connection(_, _, let to, _): to.isConnected ? "grant.connected" : "grant.disconnected"
            case .lostScopes: "grant.scopes_lost"
            case .sessionReused: "session.reuse_detected"
            case .userDeleted: "user.deleted"
            }
        }
    }

    /// The columns of a content, the same in every store.
    package struct Columns: Hashable, Sendable {
        private enum Kind: String {
            case connection
            case lostScopes = "lost_scopes"
            case sessionReused = "session_reused"
            case userDeleted = "user_deleted"
        }

        /// The names of the columns, in the order of ``init(kind:grant:from:to:reason:lost:granted:session:)``.
        package static let names =
            "kind, grant_id, from_state, to_state, reason, lost_scopes, granted_scopes, session_id"

        package private(set) var kind: String
        package private(set) var grant: Int64?
        package private(set) var from: String?
        package private(set) var to: String?
        package private(set) var reason: String?
        package private(set) var lost: String?
        package private(set) var granted: String?
        package private(set) var session: String?

        package init(
            kind: String,
            grant: Int64?,
            from: String?,
            to: String?,
            reason: String?,
            lost: String?,
            granted: String?,
            session: String?
        ) {
            self.kind = kind
            self.grant = grant
            self.from = from
            self.to = to
            self.reason = reason
            self.lost = lost
            self.granted = granted
            self.session = session
        }

        package init(_ content: Content) {
            grant = content.grant?.rawValue
            switch content {
            case .connection(_, let from, let to, let reason):
                kind = Kind.connection.rawValue
                self.from = from.rawValue
                self.to = to.rawValue
                self.reason = reason.rawValue
            case .lostScopes(_, let lost, let granted):
                kind = Kind.lostScopes.rawValue
                self.lost = lost
                self.granted = granted
            case .sessionReused(let session):
                kind = Kind.sessionReused.rawValue
                self.session = session.description
            case .userDeleted: kind = Kind.userDeleted.rawValue
            }
        }

        /// The content; `nil` if the columns are damaged.
        package var content: Content? {
            switch Kind(rawValue: kind) {
            case .connection:
                guard let grant, let from = from.flatMap(GrantState.init(rawValue:)),
                    let to = to.flatMap(GrantState.init(rawValue:)), let reason
                else { return nil }
                return .connection(
                    of: GrantID(rawValue: grant),
                    from: from,
                    to: to,
                    reason: GrantReason(rawValue: reason)
                )
            case .lostScopes:
                guard let grant, let lost, let granted else { return nil }
                return .lostScopes(of: GrantID(rawValue: grant), lost: lost, granted: granted)
            case .sessionReused: return session.flatMap { SessionID(text: $0) }.map(Content.sessionReused)
            case .userDeleted: return .userDeleted
            case nil: return nil
            }
        }
    }
}
