import Base
import GoogleOAuth
import HTTPClient
import Routes
import Storage

/// The place of a login's keys.
enum KeyLocation: Equatable, Sendable {
    case endpoint(Endpoint)
    case file(String)
}

extension SettingValue {
    static func keyLocations(_ text: String) throws(InputError) -> [KeyLocation] {
        try list(text, of: "URL or file") { piece throws(InputError) in
            piece.contains("://") ? .endpoint(try endpoint(piece)) : .file(piece)
        }
    }
}

extension CommandContext {
    /// `true` if a secret of the app's own tokens is configured.
    var hasAppSecret: Bool { configuration.hasAppSecret(environment: inputs.environment) }

    /// Reads a file with the keys of a login.
    func readAppKeys(_ path: String) throws -> KeySet {
        guard let set = KeySet(JSONValue.object(in: try appKeyFile(path))) else {
            throw CommandError(
                .configuration,
                "--app-keys: \(path) is no JSON Web Key Set with a usable key: with a kid, RSA of at least 2048 bits or P-256"
            )
        }
        return set
    }

    private func appKeyFile(_ path: String) throws -> [UInt8] {
        do throws(InputError) {
            return try inputs.files.read(path)
        } catch {
            throw CommandError(error.mayPass ? .inputOutput : .configuration, "--app-keys: \(path) \(error.message)")
        }
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
                return KeySetCache(.file { try appKeyFile(path) }, http: http, time: time)
            }
        }
    }
}
