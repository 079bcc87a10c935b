import Base
import Routes
import Storage

/// A user as an import reads it.
///
/// A field is `nil` if the record does not have it.
struct ImportedUser: Equatable, Sendable {
    let id: String
    let createdAt: Timestamp?
    let email: String?
    let emailIsVerified: Bool?
    let name: String?
    let picture: String?
    let googleUserID: String?
    let lastLoginAt: Timestamp?
    let isActive: Bool?

    init(members: [String: JSONValue], by map: UserFieldMap, at now: Timestamp) throws(InputError) {
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
            let names = (time: fields.label("created_at"), date: fields.label("created_on"))
            throw InputError("\(names.time) is a time of day without a date; \(names.date) must hold the date")
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
        user.name = user.name.flatMap { $0.isEmpty ? nil : $0 } ?? name ?? user.name
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

/// The names that a file of users has for its fields.
struct UserFieldMap: Equatable, Sendable {
    /// The fields of a user, by their own names.
    static let fields = [
        "user_id", "email", "email_verified", "name", "picture", "google_user_id", "is_active", "created_on",
        "created_at", "last_login",
    ]

    /// The rows of PayPulse's table `Users` in DynamoDB.
    static let payPulse = UserFieldMap(
        argument: "paypulse",
        names: [
            "user_id": "UserID", "email": "Email", "name": "Name", "created_on": "CreatedOn", "created_at": "CreatedAt",
        ]
    )
    /// The rows of ComprehensionEngine's table `users` in PostgreSQL.
    static let comprehensionEngine = UserFieldMap(
        argument: "comprehension-engine",
        names: ["user_id": "id", "google_user_id": "google_id", "picture": "avatar_url"]
    )
    static let unmapped = UserFieldMap(argument: nil, names: [:])

    /// The map's name on the command line, or `nil` without a map.
    let argument: String?
    /// The file's name for each of ``fields`` that has another name there.
    let names: [String: String]
}

extension UserFieldMap {
    /// Parses the name of a known map, or `FIELD=NAME,…`.
    ///
    /// Without an argument, fields have their own names.
    init(reading argument: String?) throws(InputError) {
        if let known = [.unmapped, Self.payPulse, .comprehensionEngine].first(where: { $0.argument == argument }) {
            self = known
            return
        }
        guard let argument, argument.contains("=") else {
            throw InputError(
                "\(DisplayedText(argument ?? "")) is not a known map: use paypulse, comprehension-engine or FIELD=NAME,…"
            )
        }
        var names: [String: String] = [:]
        for pair in argument.split(separator: ",", omittingEmptySubsequences: false) {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2, !parts[1].isEmpty else {
                throw InputError("\(DisplayedText(String(pair))) is not FIELD=NAME")
            }
            guard Self.fields.contains(parts[0]) else {
                let hint = parts[0].suggestion(among: Self.fields)
                throw InputError(
                    "\(DisplayedText(parts[0])) is not a field of a user\(hint); the fields are \(Self.fieldList)"
                )
            }
            guard names.updateValue(parts[1], forKey: parts[0]) == nil else {
                throw InputError("\(parts[0]) is given twice")
            }
        }
        self.init(argument: argument, names: names)
    }

    private static let fieldList = fields.joined(separator: ", ")

    /// Returns the members that this map does not read.
    func ignored(in members: [String: JSONValue]) -> Set<String> {
        Set(members.keys).subtracting(Self.fields.map { names[$0] ?? $0 })
    }

    /// Returns the map that would fit a row in which this map does not find a user id.
    func advice(for members: [String: JSONValue]) -> String {
        if self != .payPulse, members["UserID"] != nil { return "the row fits --map paypulse" }
        let isComprehensionEngine = ["google_id", "avatar_url", "last_login"].contains { members[$0] != nil }
        if self != .comprehensionEngine, members["id"] != nil, isComprehensionEngine {
            return "the row fits --map comprehension-engine"
        }
        if self != .unmapped, members["user_id"] != nil { return "the row needs no --map" }
        return "name the field that holds the user's id: --map user_id=NAME"
    }
}
