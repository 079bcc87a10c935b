private import Glibc

/// The proxies that libcurl takes from the environment (https://curl.se/libcurl/c/CURLOPT_PROXY.html).
enum ProxyEnvironment {
    /// `true` if https URLs may go through a proxy that itself speaks TLS.
    ///
    /// libcurl prepares the TLS of such a proxy like that of the server: the proxy would be offered HTTP/2.
    static func namesTLSProxy(_ variable: (String) -> String? = variable) -> Bool {
        ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"].contains { name in
            variable(name)?.lowercased().hasPrefix("https://") ?? false
        }
    }

    private static func variable(_ name: String) -> String? {
        guard let value = unsafe getenv(name) else { return nil }
        return unsafe String(cString: value)
    }
}
