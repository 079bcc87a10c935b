import Base

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
