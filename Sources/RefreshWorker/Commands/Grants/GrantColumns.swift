import Base
import Storage

/// The columns of `grants list`.
enum GrantColumns {
    /// The columns of a database in which a user has several connections.
    static let withConnections: [Listing<Grant>.Column] =
        [all[0], connection] + all.dropFirst()
    static let connection = Listing<Grant>.Column(title: "CONNECTION") { grant, _ in grant.connection.description }
    static let all: [Listing<Grant>.Column] = [
        .init(title: "USER", narrowest: 12) { grant, _ in grant.userID.escapingInvisible },
        .init(title: "STATE") { grant, _ in grant.state.rawValue },
        .init(title: "REASON", narrowest: 12) { grant, _ in grant.reason == .none ? "-" : grant.reason.rawValue },
        .init(title: "SINCE") { grant, now in grant.since.distance(from: now) },
        .init(title: "TOKEN ENDS") { grant, now in grant.accessToken?.expiresAt.distance(from: now) ?? "-" },
        .init(title: "DUE") { grant, now in grant.dueAt?.distance(from: now) ?? "-" },
        .init(title: "E-MAIL", narrowest: 16) { grant, _ in grant.owner.email?.escapingInvisible ?? "-" },
    ]
}
