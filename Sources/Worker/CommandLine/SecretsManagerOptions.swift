/// The secrets of AWS Secrets Manager to import, their location, and how to treat them.
package struct SecretsManagerOptions: Equatable, Sendable {
    /// The default prefix of the names, before the user's id.
    static let defaultPrefix = "gmail/user/"
    /// The name of the secret whose text is the client id.
    package static let clientIDName = "Google-OAuth-Client-ID"

    package let prefix: String
    package let region: String
    /// `nil` for Amazon's own endpoint of the region.
    package var endpoint: String?
    package var credentialsFile: String?
    package var replacesExisting = false
    /// `true` for a dry run: nothing is stored.
    package var isDryRun = false
    package var isJSON = false

    /// The URL of the service.
    package var url: String {
        // https://docs.aws.amazon.com/general/latest/gr/asm.html
        endpoint ?? "https://secretsmanager.\(region).amazonaws.com\(region.hasPrefix("cn-") ? ".cn" : "")/"
    }
}
