import Base
import Storage

/// The columns of `users list`.
enum UserColumns {
    static let all: [Listing<User>.Column] = [
        .init(title: "USER", narrowest: 12) { user, _ in user.id.escapingInvisible },
        .init(title: "E-MAIL", narrowest: 16) { user, _ in user.email?.escapingInvisible ?? "-" },
        .init(title: "LAST SIGN-IN") { user, now in user.lastLoginAt?.distance(from: now) ?? "-" },
        .init(title: "CREATED") { user, now in user.createdAt.distance(from: now) },
        .init(title: "STATE") { user, _ in user.status },
        .init(title: "NAME", narrowest: 10) { user, _ in user.name?.escapingInvisible ?? "-" },
    ]
}
