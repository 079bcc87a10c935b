import Clocks
import JSON
import Store

/// A user as an import reads it: what the record does not tell is `nil`.
struct ImportedUser: Equatable, Sendable {
    let id: String
    let createdAt: Timestamp?
    let email: String?
    let name: String?
    let picture: String?
    let googleUserID: String?
    let isActive: Bool?

    init(from record: RecordSplitter.Record, at now: Timestamp) throws(ImportProblem) {
        let fields = GrantFields(try record.members())
        id = try GrantReader.checked(userID: try fields.identifier("user_id"))
        let createdOn = try fields.instant("created_on")
        let createdAt = try fields.instant("created_at")
        self.createdAt = (createdOn ?? createdAt).map { min($0, now) }
        email = try fields.text("email")
        name = try fields.text("name")
        picture = try fields.text("picture")
        googleUserID = try fields.identifier("google_user_id")
        isActive = try fields.boolean("is_active")
    }

    /// The user with what the record tells, over what was stored.
    func user(over stored: User?, at now: Timestamp) -> User {
        // When a placeholder was made says nothing about the user.
        let known = stored.flatMap { $0.isPlaceholder ? nil : $0.createdAt }
        let isSameAddress = email == nil || email == stored?.email
        return User(
            id: id,
            createdAt: createdAt ?? known ?? stored?.createdAt ?? now,
            email: email ?? stored?.email,
            emailIsVerified: isSameAddress ? stored?.emailIsVerified : nil,
            name: name ?? stored?.name,
            picture: picture ?? stored?.picture,
            googleUserID: googleUserID ?? stored?.googleUserID,
            lastLoginAt: stored?.lastLoginAt,
            isActive: isActive ?? stored?.isActive ?? true
        )
    }
}
