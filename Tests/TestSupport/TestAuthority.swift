import Foundation

/// A temporary certificate authority and its certificates, in a temporary folder, made by `openssl`.
package struct TestAuthority {
    private let folder: URL

    package init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "authority-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try openssl(
            "req -x509 \(Self.newKey) -keyout \(path("ca.key")) -out \(path("ca.pem")) -days 2 -subj /CN=Test-CA"
        )
    }

    package var certificateFile: String { path("ca.pem") }

    package func path(_ name: String) -> String { folder.appending(path: name).path }

    package func remove() {
        try? FileManager.default.removeItem(at: folder)
    }

    /// Makes `name.key` and `name.pem`, valid for the given names (`DNS:localhost,IP:127.0.0.1`) and number of days;
    /// with negative days it has expired.
    package func issue(_ name: String, for subjects: String, days: Int = 2) throws {
        try openssl("req \(Self.newKey) -keyout \(path(name)).key -out \(path(name)).csr -subj /CN=test")
        try Data("subjectAltName=\(subjects)\n".utf8).write(to: folder.appending(path: "\(name).ext"))
        try openssl(
            "x509 -req -in \(path(name)).csr -CA \(path("ca.pem")) -CAkey \(path("ca.key")) -CAcreateserial "
                + "-days \(days) -extfile \(path(name)).ext -out \(path(name)).pem"
        )
    }

    private static let newKey = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"

    private func openssl(_ arguments: String) throws {
        let words = arguments.split(separator: " ").map(String.init)
        try ChildProcess(try Tool.openssl.path, words).waitForSuccess()
    }
}
