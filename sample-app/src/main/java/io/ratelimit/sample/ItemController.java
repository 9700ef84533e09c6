package io.ratelimit.sample;

import io.ratelimit.annotation.RateLimited;
import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

/** The things the shop sells. */
@RestController
@RequestMapping("/api/items")
class ItemController {

    private static final int SHELF_SPACE = 1_000;

    private final Map<Integer, Item> items = new ConcurrentSkipListMap<>(
            Map.of(1, new Item(1, "kettle"), 2, new Item(2, "teapot"), 3, new Item(3, "cup")));

    @GetMapping
    Collection<Item> all() {
        return items.values();
    }

    @GetMapping("/{id}")
    Item one(@PathVariable int id) {
        Item item = items.get(id);
        if (item == null) {
            throw new ResponseStatusException(HttpStatus.NOT_FOUND);
        }
        return item;
    }

    /** Changes an item, at most five times a minute for each item. */
    @RateLimited(name = "item-changes", rate = "5/1m", key = "#id")
    @PutMapping("/{id}")
    Item put(@PathVariable int id, @RequestBody NewItem item) {
        if (id < 1 || id > SHELF_SPACE) {
            throw new ResponseStatusException(HttpStatus.BAD_REQUEST);
        }
        Item stored = new Item(id, item.name());
        items.put(id, stored);
        return stored;
    }

    record Item(int id, String name) {}

    record NewItem(String name) {}
}
