package import Base
internal import Storage

/// A user as an import reads it.
///
/// A field is `nil` if the record does not have it.
package struct ImportedUser: Equatable, Sendable {
    package let id: String
    package let createdAt: Timestamp?
    let email: String?
    let emailIsVerified: Bool?
    let name: String?
    let picture: String?
    let googleUserID: String?
    let lastLoginAt: Timestamp?
    let isActive: Bool?

    package init(members: [String: JSONValue], by map: UserFieldMap, at now: Timestamp) throws(InputError) {
        let fields = RecordFields(members: members, names: map.names)
        guard let id = try fields.identifier("user_id") else {
            throw InputError("\(fields.label("user_id")) is missing; \(map.advice(for: members))")
        }
        let userID = try RecordFields.checked(userID: id)
        do throws(InputError) {
            try self.init(id: userID, fields: fields, at: now)
        } catch {
            var problem = error
            problem.userID = userID
            throw problem
        }
    }

    private init(id: String, fields: RecordFields, at now: Timestamp) throws(InputError) {
        self.id = id
        createdAt = try Self.creation(in: fields).map { min($0, now) }
        email = try fields.text("email")
        emailIsVerified = try fields.boolean("email_verified")
        name = try fields.text("name")
        picture = try fields.text("picture")
        googleUserID = try fields.identifier("google_user_id")
        lastLoginAt = try fields.day("last_login").map { min($0, now) }
        isActive = try fields.boolean("is_active")
    }

    /// Returns the instant of creation, which PayPulse splits into a date, `created_on`, and a time of day,
    /// `created_at`.
    private static func creation(in fields: RecordFields) throws(InputError) -> Timestamp? {
        let createdOn = try fields.day("created_on")
        guard let time = fields.timeOfDay("created_at") else {
            let createdAt = try fields.day("created_at")
            return createdOn ?? createdAt
        }
        guard let createdOn else {
            let (time, date) = (fields.label("created_at"), fields.label("created_on"))
            throw InputError("\(time) is a time of day without a date; \(date) must hold the date")
        }
        return fields.isDate("created_on") ? createdOn + time : createdOn
    }

    /// Returns the user with the record's fields, and the stored ones where the record has none.
    func user(over stored: User?, at now: Timestamp) -> User {
        var user = stored ?? User(id: id, createdAt: now)
        let isSameAddress = email == nil || email == user.email
        user.createdAt = createdAt ?? user.createdAt
        user.email = email ?? user.email
        user.emailIsVerified = emailIsVerified ?? (isSameAddress ? user.emailIsVerified : nil)
        user.name = name ?? user.name
        user.picture = picture ?? user.picture
        user.googleUserID = googleUserID ?? user.googleUserID
        // A sign-in here is later than any in the record.
        user.lastLoginAt = [lastLoginAt, user.lastLoginAt].compactMap(\.self).max()
        user.isActive = isActive ?? user.isActive
        user.isFromSignIn = false
        return user
    }

    /// Returns the stored user with missing fields filled in, such as those of a user that only a token has named so
    /// far.
    ///
    /// The earlier creation is the true one, and a user who was deactivated elsewhere is not active here.
    func completing(_ stored: User) -> User {
        var user = stored
        let isSameAddress = user.email == nil || user.email == email
        user.createdAt = earlierCreation(than: user.createdAt) ?? user.createdAt
        user.email = user.email ?? email
        user.emailIsVerified = user.emailIsVerified ?? (isSameAddress ? emailIsVerified : nil)
        if user.name?.isEmpty != false, let name { user.name = name }
        user.picture = user.picture ?? picture
        user.googleUserID = user.googleUserID ?? googleUserID
        user.lastLoginAt = [lastLoginAt, user.lastLoginAt].compactMap(\.self).max()
        user.isActive = user.isActive && isActive != false
        user.isFromSignIn = false
        return user
    }

    /// Returns the record's time of creation if it is earlier.
    ///
    /// A date without a time is not earlier on its own day.
    private func earlierCreation(than instant: Timestamp) -> Timestamp? {
        guard let createdAt, createdAt < instant else { return nil }
        let isDate = createdAt.milliseconds.isMultiple(of: 86_400_000)
        return isDate && instant < createdAt + .seconds(86_400) ? nil : createdAt
    }
}
