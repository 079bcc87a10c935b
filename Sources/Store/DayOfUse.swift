package import Clocks

extension Grant {
    /// The day of the last refresh, or of the first connection if there was none.
    ///
    /// Stores find idle grants by it: an index on the day changes once a day, and not with each refresh.
    package var dayOfUse: Int64 { (lastSuccessAt ?? createdAt).day }
}

extension Timestamp {
    /// The number of whole days between 1970 and this instant, in UTC; negative before 1970.
    package var day: Int64 {
        let length: Int64 = 86_400_000
        return milliseconds >= 0 ? milliseconds / length : (milliseconds - length + 1) / length
    }
}
