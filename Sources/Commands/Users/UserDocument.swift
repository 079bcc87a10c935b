import Base
import Storage
import Telemetry

/// A user as JSON: the output of `users list` and `users show`.
enum UserDocument {
    static func line(of user: User) -> JSONLine {
        var line = JSONLine()
        line.field("user_id", user.id)
        line.fieldOrNull("email", user.email)
        if let isVerified = user.emailIsVerified {
            line.field("email_verified", isVerified)
        } else {
            line.null("email_verified")
        }
        line.fieldOrNull("name", user.name)
        line.fieldOrNull("picture", user.picture)
        line.fieldOrNull("google_user_id", user.googleUserID)
        line.field("is_active", user.isActive)
        line.field("created_at", user.createdAt.iso8601)
        line.fieldOrNull("last_login", user.lastLoginAt?.iso8601)
        line.fieldOrNull("deleted_until", user.deletedUntil?.iso8601)
        return line
    }

    /// Returns the same fields and the user's grant, as `grants show` prints it.
    static func line(of user: User, grant: Grant?) -> JSONLine {
        var line = line(of: user)
        if let grant {
            line.object("grant") { GrantDocument.write(grant, to: &$0) }
        } else {
            line.null("grant")
        }
        return line
    }
}
