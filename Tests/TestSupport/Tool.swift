import Foundation

/// The programs of the TLS tests.
package enum Tool: String {
    case openssl
    case nghttpd

    private var found: String? {
        ["/usr/bin", "/usr/sbin", "/usr/local/bin"].map { "\($0)/\(rawValue)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    package var isInstalled: Bool { found != nil }

    package var path: String {
        get throws {
            guard let found else { throw ChildProcess.Failure(message: "\(rawValue) is not installed") }
            return found
        }
    }
}
