// Reads control files as Koordinator's collectors do: the whole file with os.ReadFile each pass, `key value` lines into
// a map, numbers by strconv. Answers the requests of bench/reader_process.py on standard input.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type fileGroup struct {
	Name  string   `json:"name"`
	Form  string   `json:"form"`
	Paths []string `json:"paths"`
	Keys  []string `json:"keys"`
}

type plan struct {
	Groups []fileGroup `json:"groups"`
}

type request struct {
	Passes          int     `json:"passes"`
	IntervalSeconds float64 `json:"interval_seconds"`
}

type answer struct {
	CPUNanos int64            `json:"cpu_ns"`
	Totals   map[string]int64 `json:"totals"`
}

type pressureLine struct {
	avg10, avg60, avg300 float64
	total                int64
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	check(err)
	var asked plan
	check(json.Unmarshal(text, &asked))
	requests, answers := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	check(answers.Encode(map[string]any{"ready": true}))
	for requests.Scan() {
		var wanted request
		check(json.Unmarshal(requests.Bytes(), &wanted))
		check(answers.Encode(serve(asked.Groups, wanted)))
	}
}

func serve(groups []fileGroup, wanted request) answer {
	totals := map[string]int64{}
	before, due := cpuNanos(), time.Now()
	for pass := 0; pass < wanted.Passes; pass++ {
		time.Sleep(time.Until(due))
		due = due.Add(time.Duration(wanted.IntervalSeconds * float64(time.Second)))
		for _, group := range groups {
			totals[group.Name] = readGroup(group)
		}
	}
	return answer{cpuNanos() - before, totals}
}

func readGroup(group fileGroup) int64 {
	var total int64
	for _, path := range group.Paths {
		data, err := os.ReadFile(path)
		check(err)
		switch content := strings.Trim(string(data), "\n"); group.Form {
		case "number":
			total += whole(content)
		case "keyed":
			found := keyValues(content)
			for _, key := range group.Keys {
				total += whole(found[key])
			}
		case "pressure":
			for _, line := range pressure(content) {
				total += line.total
			}
		}
	}
	return total
}

func keyValues(content string) map[string]string {
	found := map[string]string{}
	for _, line := range strings.Split(content, "\n") {
		if fields := strings.Fields(line); len(fields) >= 2 {
			found[fields[0]] = fields[1]
		}
	}
	return found
}

func pressure(content string) map[string]pressureLine {
	lines := map[string]pressureLine{}
	for _, text := range strings.Split(content, "\n") {
		fields := strings.Fields(text)
		var line pressureLine
		for _, field := range fields[1:] {
			key, value, _ := strings.Cut(field, "=")
			switch key {
			case "avg10":
				line.avg10 = ratio(value)
			case "avg60":
				line.avg60 = ratio(value)
			case "avg300":
				line.avg300 = ratio(value)
			case "total":
				line.total = whole(value)
			}
		}
		lines[fields[0]] = line
	}
	return lines
}

func whole(text string) int64 {
	value, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	check(err)
	return value
}

func ratio(text string) float64 {
	value, err := strconv.ParseFloat(text, 64)
	check(err)
	return value
}

func cpuNanos() int64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
