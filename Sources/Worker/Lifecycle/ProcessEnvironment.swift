private import CProcess

/// The environment variables of the process.
package enum ProcessEnvironment {
    /// The variables by name.
    ///
    /// The worker never changes its environment, so this may be read at any time. A variable that is not UTF-8 is
    /// repaired and not dropped, so that a check of its value finds it.
    package static var current: [String: String] {
        var variables: [String: String] = [:]
        guard var entry = unsafe refresh_worker_environment() else { return variables }
        while let text = unsafe entry.pointee {
            let parts = unsafe String(cString: text).split(
                separator: "=",
                maxSplits: 1,
                omittingEmptySubsequences: false
            )
            if parts.count == 2 {
                variables[String(parts[0])] = String(parts[1])
            }
            unsafe entry += 1
        }
        return variables
    }
}
