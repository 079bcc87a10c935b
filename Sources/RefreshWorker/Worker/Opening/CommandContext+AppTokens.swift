import Base
import Crypto
import GoogleOAuth
import Routes
import Storage

/// Opens what verifies the tokens of the app.
extension CommandContext {
    /// `true` if a secret of the app's own tokens is configured.
    var hasAppSecret: Bool { configuration.hasAppSecret(environment: inputs.environment) }

    /// Reads the secrets of the app's own tokens: one, or two while one replaces the other.
    func openSigner() throws -> TokenSigner {
        let source: String
        let secrets: [Secret]
        if let path = configuration.jwtSecretFile {
            source = "--jwt-secret-file: \(path)"
            secrets = try Secret.read(privateFile: path, for: "--jwt-secret-file").lines
        } else {
            source = "the variable \(Setting.jwtSecretName)"
            secrets = Secret(inputs.environment[Setting.jwtSecretName] ?? "").lines
        }
        do throws(CryptoError) {
            return try TokenSigner(secrets: secrets)
        } catch {
            throw CommandError(.configuration, "\(source): \(error)")
        }
    }

    /// Reads a file with the keys of a login.
    func readAppKeys(_ path: String) throws -> KeySet {
        guard let set = KeySet(JSONValue.object(in: try read(path, for: "--app-keys"))) else {
            throw CommandError(
                .configuration,
                "--app-keys: \(path) is no JSON Web Key Set with a usable key: with a kid, RSA of at least 2048 bits or P-256"
            )
        }
        return set
    }

    /// Returns the verification of the app's own tokens, for both listeners.
    func openAppTokens(store: any Store) throws -> AppTokens {
        let isUsed = configuration.verifiesAppTokens
        return AppTokens(
            signer: isUsed && hasAppSecret ? try openSigner() : nil,
            keySets: isUsed ? try openKeySets(configuration.appKeys) : [],
            issuer: configuration.appIssuer,
            audience: configuration.appAudience,
            userClaim: configuration.appUserClaim,
            store: store,
            time: time
        )
    }

    /// Returns the keys of logins, which have an HTTP client of their own, as notices do.
    private func openKeySets(_ locations: [KeyLocation]) throws -> [KeySetCache] {
        guard !locations.isEmpty else { return [] }
        let http = try openHTTP(maximumInFlight: locations.count)
        return try locations.map { location in
            switch location {
            case .endpoint(let endpoint):
                return KeySetCache(.keys(endpoint), http: http, time: time)
            case .file(let path):
                _ = try readAppKeys(path)
                return KeySetCache(.file { try read(path, for: "--app-keys") }, http: http, time: time)
            }
        }
    }
}
