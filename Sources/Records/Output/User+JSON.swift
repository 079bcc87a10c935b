package import Base
package import Storage

/// A user as JSON for programs: what `users list` and `users show` print.
extension User {
    /// Adds the fields for programs.
    package func write(to line: inout JSONLine) {
        line.field("user_id", id)
        line.fieldOrNull("email", email)
        line.fieldOrNull("email_verified", emailIsVerified)
        line.fieldOrNull("name", name)
        line.fieldOrNull("picture", picture)
        line.fieldOrNull("google_user_id", googleUserID)
        line.field("is_active", isActive)
        line.field("created_at", createdAt.iso8601)
        line.fieldOrNull("last_login", lastLoginAt?.iso8601)
        line.fieldOrNull("deleted_until", deletedUntil?.iso8601)
    }

    /// Adds the same fields and the user's grants, as `grants list` prints them. `grant` is that of the default
    /// connection.
    package func write(with grants: [Grant], to line: inout JSONLine) {
        write(to: &line)
        if let grant = grants.first(where: { $0.connection.isDefault }) {
            line.object("grant", grant.write)
        } else {
            line.null("grant")
        }
        line.objects("connections", grants) { $0.write(to: &$1) }
    }
}
