package import Base

/// The names that a file of users has for its fields.
package struct UserFieldMap: Equatable, Sendable {
    /// The fields of a user, by their own names.
    package static let fields = [
        "user_id", "email", "email_verified", "name", "picture", "google_user_id", "is_active", "created_on",
        "created_at", "last_login",
    ]

    /// The rows of PayPulse's table `Users` in DynamoDB.
    package static let payPulse = UserFieldMap(
        argument: "paypulse",
        names: [
            "user_id": "UserID", "email": "Email", "name": "Name", "created_on": "CreatedOn", "created_at": "CreatedAt",
        ]
    )
    /// The rows of ComprehensionEngine's table `users` in PostgreSQL.
    package static let comprehensionEngine = UserFieldMap(
        argument: "comprehension-engine",
        names: ["user_id": "id", "google_user_id": "google_id", "picture": "avatar_url"]
    )
    package static let unmapped = UserFieldMap(argument: nil, names: [:])

    /// The map's name on the command line, or `nil` without a map.
    package let argument: String?
    /// The file's name for each of ``fields`` that has another name there.
    package let names: [String: String]

    package init(argument: String?, names: [String: String]) {
        self.argument = argument
        self.names = names
    }

    /// Returns the members that this map does not read.
    package func ignored(in members: [String: JSONValue]) -> Set<String> {
        Set(members.keys).subtracting(Self.fields.map { names[$0] ?? $0 })
    }

    /// Returns the map that would fit a row in which this map does not find a user id.
    package func advice(for members: [String: JSONValue]) -> String {
        if self != .payPulse, members["UserID"] != nil { return "the row fits --map paypulse" }
        let isComprehensionEngine = ["google_id", "avatar_url", "last_login"].contains { members[$0] != nil }
        if self != .comprehensionEngine, members["id"] != nil, isComprehensionEngine {
            return "the row fits --map comprehension-engine"
        }
        if self != .unmapped, members["user_id"] != nil { return "the row needs no --map" }
        return "name the field that holds the user's id: --map user_id=NAME"
    }
}
