extension Timestamp {
    /// Returns the number of days from 1 January 1970 to a date of the Gregorian calendar, or `nil` if the date does
    /// not exist.
    package static func days(toYear year: Int64, month: Int64, day: Int64) -> Int64? {
        guard (1...12).contains(month), (1...days(inMonth: month, of: year)).contains(day) else { return nil }
        return daysSince1970(year: year, month: month, day: day)
    }

    private static func days(inMonth month: Int64, of year: Int64) -> Int64 {
        let isLeapYear = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        switch month {
        case 2: return isLeapYear ? 29 : 28
        case 4, 6, 9, 11: return 30
        default: return 31
        }
    }

    /// Returns the day's number in the Gregorian calendar, which has 146,097 days in each 400 years.
    private static func daysSince1970(year: Int64, month: Int64, day: Int64) -> Int64 {
        // In a year that begins in March, the leap day is the last day, so the months before it have fixed starts.
        let shifted = month > 2 ? year : year - 1
        let monthFromMarch = (month + 9) % 12
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
        let leapDays = floorDivide(shifted, 4) - floorDivide(shifted, 100) + floorDivide(shifted, 400)
        // There are 719,468 days from 1 March of year 0 to 1 January 1970.
        return shifted * 365 + leapDays + dayOfYear - 719_468
    }

    private static func floorDivide(_ number: Int64, _ divisor: Int64) -> Int64 {
        number >= 0 ? number / divisor : -((-number + divisor - 1) / divisor)
    }
}
