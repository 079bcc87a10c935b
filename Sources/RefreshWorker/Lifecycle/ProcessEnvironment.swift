private import CProcess

/// The variables that the process was started with.
enum ProcessEnvironment {
    /// The variables by name.
    ///
    /// Nothing in the worker changes the environment, so that this may be read at any time.
    /// A variable that is no UTF-8 is repaired rather than dropped, so that a check of its value finds it.
    static var current: [String: String] {
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
