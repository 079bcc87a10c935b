import Base
import Crypto
import HTTPServer
import Routes

/// Opens the dependencies of the listeners, with errors that say how to fix them.
extension CommandContext {
    /// Reads the services that can get tokens.
    func readServices() throws -> ServiceList {
        guard let path = configuration.servicesFile else {
            throw CommandError(.configuration, "--services-file is needed to vend tokens")
        }
        let text = try Secret.read(privateFile: path, for: "--services-file")
        do throws(FormatError) {
            return try ServiceList(parsing: text.reveal().utf8)
        } catch {
            throw CommandError(.configuration, "--services-file: \(path): \(error)")
        }
    }

    /// Reads the certificate of the internal listener, or returns `nil` if it serves plain HTTP.
    func readInternalCertificate() throws -> ServerCertificate? {
        guard let path = configuration.internalCertificateFile, let keyPath = configuration.internalKeyFile else {
            return nil
        }
        let chain = try read(path, for: "--internal-certificate")
        let key = try Secret.read(privateFile: keyPath, for: "--internal-key")
        do throws(HTTPServerError) {
            return try ServerCertificate(chain: chain, key: key)
        } catch {
            let origin =
                switch error.code {
                case .badCertificate: "--internal-certificate: \(path)"
                case .badKey: "--internal-key: \(keyPath)"
                default: "--internal-certificate and --internal-key: \(path) and \(keyPath)"
                }
            throw CommandError(.configuration, "\(origin): \(error)")
        }
    }
}
