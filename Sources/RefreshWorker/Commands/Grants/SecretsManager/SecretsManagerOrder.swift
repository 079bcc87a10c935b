/// Which secrets of AWS Secrets Manager to bring in, from where, and what to do with them.
struct SecretsManagerOrder: Equatable, Sendable {
    /// What the names of the seeds' grants begin with, before the user's id.
    static let usualPrefix = "gmail/user/"
    /// The secret whose text is the client id.
    static let clientIDName = "Google-OAuth-Client-ID"

    let prefix: String
    let region: String
    /// `nil` for Amazon's own of the region.
    var endpoint: String?
    var credentialsFile: String?
    var replacesExisting = false
    /// Whether everything is done but for storing.
    var isRehearsal = false

    /// Where the service answers.
    var url: String {
        // https://docs.aws.amazon.com/general/latest/gr/asm.html
        endpoint ?? "https://secretsmanager.\(region).amazonaws.com\(region.hasPrefix("cn-") ? ".cn" : "")/"
    }
}
